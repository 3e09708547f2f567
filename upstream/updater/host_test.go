package updater

import (
	"flag"
	"os"
	"testing"
)

// TestMain turns a test binary that runs without arguments into the host.
func TestMain(m *testing.M) {
	if len(os.Args) == 1 {
		if err := flag.Set("test.run", "^TestHost$"); err != nil {
			panic(err)
		}
		serving = true
	}
	os.Exit(m.Run())
}

var serving bool

// TestHost answers requests and exits.
func TestHost(t *testing.T) {
	if !serving {
		t.Skip("this is the host: run the test binary without arguments")
	}
	out := os.Stdout
	os.Stdout = os.Stderr
	Host(t, os.Stdin, out)
}
