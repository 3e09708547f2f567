package recommender

import (
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/spf13/pflag"
	"k8s.io/autoscaler/vertical-pod-autoscaler/pkg/features"
	"k8s.io/autoscaler/vertical-pod-autoscaler/pkg/recommender/config"
)

// parseFlags lets upstream register and parse the recommender's flags, as its main function does.
// Upstream uses global sets of flags, so they are replaced for the call.
func parseFlags(flags map[string]string) (parsed *config.RecommenderConfig, err error) {
	args, goFlags, pFlags := os.Args, flag.CommandLine, pflag.CommandLine
	defer func() { os.Args, flag.CommandLine, pflag.CommandLine = args, goFlags, pFlags }()
	flag.CommandLine = flag.NewFlagSet("recommender", flag.ContinueOnError)
	flag.CommandLine.SetOutput(io.Discard)
	pflag.CommandLine = pflag.NewFlagSet("recommender", pflag.ContinueOnError)
	pflag.CommandLine.SetOutput(io.Discard)
	// Messages of higher verbosity are not recorded.
	os.Args = []string{"recommender", "--v=0"}
	// Gates are global: the default replaces the value of the last scenario. The recommender reads no
	// other gate.
	os.Args = append(os.Args, fmt.Sprintf("--feature-gates=%s=false", features.PerVPAConfig))
	for name, value := range flags {
		os.Args = append(os.Args, fmt.Sprintf("--%s=%s", name, value))
	}
	parsed = config.InitRecommenderFlags()
	// Upstream ignores the error, because its own set of flags ends the process.
	return parsed, pflag.CommandLine.Parse(os.Args[1:])
}
