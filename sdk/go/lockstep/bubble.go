package lockstep

import (
	"fmt"
	"math/rand"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// never is a channel from outside of all bubbles: a goroutine that waits for it stops the clock of its
// bubble.
var never = make(chan struct{})

// inBubble calls f in a bubble. If goroutines of the controller remain that never end, it leaves the
// bubble behind with its clock stopped.
func inBubble(t *testing.T, f func() error) error {
	rand.Seed(1) //nolint:staticcheck // for the jitter in client-go
	done := make(chan error, 1)
	go func() {
		defer func() {
			if p := recover(); p != nil {
				done <- fmt.Errorf("%v", p)
			}
		}()
		synctest.Test(t, func(*testing.T) {
			err := f()
			if left := outlast(); len(left) > 0 {
				fmt.Fprintln(os.Stderr, leftBehind(left))
				done <- err
				<-never
			}
			done <- err
		})
	}()
	return <-done
}

// outlast gives goroutines that wait for a timer the time to end, and returns those that remain.
func outlast() []goroutine {
	for _, pause := range []time.Duration{0, time.Second, time.Minute, time.Hour, 24 * time.Hour} {
		time.Sleep(pause)
		synctest.Wait()
		left := goroutinesOf(ownBubble())
		if len(left) == 0 || pause == 24*time.Hour {
			return left
		}
	}
	return nil
}

func leftBehind(left []goroutine) string {
	var b strings.Builder
	fmt.Fprintf(
		&b,
		"%d goroutines of the controller did not end with its context, for example:",
		len(left),
	)
	for i, g := range left {
		if i == 3 {
			break
		}
		fmt.Fprintf(&b, "\n  %s", g)
	}
	return b.String()
}
