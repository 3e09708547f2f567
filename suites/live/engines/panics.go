// An engine that panics in the middle of a scenario like a controller: in a separate goroutine, so
// that main cannot recover.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"strings"
)

func main() {
	in := bufio.NewReader(os.Stdin)
	fmt.Println(`{"hello":{"protocol":2,"engine":"panics","release":"v1.37.0"}}`)
	for steps := 0; ; {
		line, err := in.ReadString('\n')
		switch {
		case err != nil:
			return
		case strings.HasPrefix(line, `{"open"`):
			fmt.Println(`{"opened":{"epoch":"2000-01-01T00:01:00Z"}}`)
		case strings.HasPrefix(line, `{"step"`):
			if steps++; steps == 2 {
				reconcile(nil)
			}
			// The first step creates the HPA.
			fmt.Printf("{\"stepped\":{\"now\":%d,\"api\":[{\"deleted\":{\"name\":\"web\"}}]}}\n", until(line))
		}
	}
}

func until(line string) int64 {
	var request struct{ Step struct{ Until int64 } }
	if err := json.Unmarshal([]byte(line), &request); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	return request.Step.Until
}

func reconcile(sizes map[string]int) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		sizes["web"]++
	}()
	<-done
	select {} // the panic is on its way
}
