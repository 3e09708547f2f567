//go:build vpa1.5 && !vpa1.7

package recommender

import "flag"

func init() {
	mainFlags = append(mainFlags, func(set *flag.FlagSet, s *settings) {
		set.IntVar(&s.UpdateWorkerCount, "update-worker-count", 10, "")
	})
}
