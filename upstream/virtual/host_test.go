package virtual

import (
	"flag"
	"fmt"
	"os"
	"testing"
)

// TestMain makes the host of a test binary that is run without arguments.
func TestMain(m *testing.M) {
	if len(os.Args) == 1 {
		if err := flag.Set("test.run", "^TestHost$"); err != nil {
			panic(err)
		}
		serving = true
	}
	// The tests, too: with several threads, who comes first at one instant is chance.
	tune()
	os.Exit(m.Run())
}

var serving bool

// TestHost serves the protocol, and never returns: the program's last words would spoil the output.
// With -test.run=TestHost and -args serve, it can be profiled: then it returns.
func TestHost(t *testing.T) {
	profiled := flag.Arg(0) == "serve"
	if !serving && !profiled {
		t.Skip("this is the engine: run the test binary without arguments")
	}
	out := os.Stdout
	os.Stdout = os.Stderr
	if err := Host(t, os.Stdin, out); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if !profiled {
		os.Exit(0)
	}
}
