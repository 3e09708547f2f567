//go:build vpa1.4 && !vpa1.7

package recommender

import (
	"flag"

	"k8s.io/apimachinery/pkg/api/resource"
)

// globalMaximum are the flags that limit the recommendation for any container.
type globalMaximum struct {
	MaxAllowedCPU    resource.QuantityValue
	MaxAllowedMemory resource.QuantityValue
}

func init() {
	mainFlags = append(mainFlags, func(set *flag.FlagSet, s *settings) {
		set.Var(&s.MaxAllowedCPU, "container-recommendation-max-allowed-cpu", "")
		set.Var(&s.MaxAllowedMemory, "container-recommendation-max-allowed-memory", "")
	})
}
