//go:build vpa1.2 && !vpa1.7

package recommender

import "flag"

func init() {
	mainFlags = append(mainFlags, func(set *flag.FlagSet, s *settings) {
		set.StringVar(&s.ignored, "ignored-vpa-object-namespaces", "", "")
	})
}
