package lockstep

import (
	"fmt"
	"runtime"
	"strings"
	"time"
)

// goroutine is a goroutine in a bubble, from a stack dump.
type goroutine struct {
	id, state string
	durable   bool
	bubble    string
	// The line where it waits or runs, and the line that created it, both in the code of the
	// controller if it is on the stack.
	at, created string
	stack       string
}

func (g goroutine) String() string {
	return fmt.Sprintf("goroutine %s [%s] at %s, created at %s", g.id, g.state, g.at, g.created)
}

// goroutinesOf returns the goroutines of a bubble, except those of the SDK and of synctest.
func goroutinesOf(bubble string) (list []goroutine) {
	size := 1 << 20
	text := make([]byte, size)
	for n := runtime.Stack(text, true); n == size; n = runtime.Stack(text, true) {
		size *= 2
		text = make([]byte, size)
	}
	for _, stack := range strings.Split(strings.TrimRight(string(text), "\x00\n"), "\n\n") {
		g, ok := parseGoroutine(stack)
		if ok && g.bubble == bubble && !g.isOurs() {
			list = append(list, g)
		}
	}
	return list
}

// ownBubble names the bubble of the calling goroutine.
func ownBubble() string {
	text := make([]byte, 1<<12)
	g, _ := parseGoroutine(string(text[:runtime.Stack(text, false)]))
	return g.bubble
}

// parseGoroutine reads a stack that begins with a line like
// "goroutine 7 [IO wait, 2 minutes, synctest bubble 1]:". It returns false outside of bubbles.
func parseGoroutine(stack string) (goroutine, bool) {
	header, frames, _ := strings.Cut(stack, "\n")
	id, rest, _ := strings.Cut(strings.TrimPrefix(header, "goroutine "), " [")
	state, _, ok := strings.Cut(rest, "]")
	if !ok {
		return goroutine{}, false
	}
	words := strings.Split(state, ", ")
	g := goroutine{id: id, stack: stack, bubble: words[len(words)-1]}
	if !strings.HasPrefix(g.bubble, "synctest bubble ") {
		return goroutine{}, false
	}
	g.state, g.durable = strings.CutSuffix(words[0], " (durable)")
	body, created, _ := strings.Cut(frames, "created by ")
	g.at, g.created = firstLine(body), firstLine("created by "+created)
	return g, true
}

func (g goroutine) isOurs() bool {
	// The second one runs the function that synctest.Test is called with.
	return strings.HasPrefix(g.state, "synctest.Run") || strings.Contains(g.stack, "testing.tRunner(") ||
		strings.Contains(g.stack, "testing/synctest.Test.func1(")
}

// firstLine returns the first line of source in frames that is neither Go's nor the SDK's, or else the
// first one.
func firstLine(frames string) string {
	first := ""
	for line := range strings.Lines(frames) {
		place, ok := strings.CutPrefix(line, "\t")
		if !ok {
			continue
		}
		place, _, _ = strings.Cut(strings.TrimSpace(place), " +0x")
		if first == "" {
			first = place
		}
		if !strings.HasPrefix(place, runtime.GOROOT()) && !strings.Contains(place, "/src/runtime/") &&
			!strings.Contains(place, "/src/internal/") && !strings.Contains(place, "/src/net/") {
			return place
		}
	}
	return first
}

// remedies explain, by the state of a goroutine, why it holds up the clock and what to do.
var remedies = []struct{ state, why string }{
	{"IO wait", "It waits for a network connection or a pipe, for which virtual time can't wait. " +
		"Servers for metrics, health probes, webhooks or profiles must be off " +
		`(in controller-runtime, BindAddress: "0"), and clients must use run.Config.`},
	{"syscall", "It is in a system call, for which virtual time can't wait."},
	{"chan ", "It waits for a channel that was made outside of Start, for example in a package " +
		"variable or by a signal handler. Make the channel in Start; use the context of Start " +
		"instead of ctrl.SetupSignalHandler."},
	{"select", "It waits for a channel that was made outside of Start, for example in a package " +
		"variable or by a signal handler. Make the channel in Start; use the context of Start " +
		"instead of ctrl.SetupSignalHandler."},
	{"sync.", "It waits for a lock, which another goroutine holds."},
	{"run", "It computes without ever waiting for time or for an object: it polls in a loop, or its " +
		"work never ends."},
}

// diagnose says in words which goroutines of a bubble hold up its clock.
func diagnose(bubble string, patience time.Duration) string {
	var culprits []goroutine
	for _, g := range goroutinesOf(bubble) {
		if !g.durable {
			culprits = append(culprits, g)
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "virtual time did not pass within %s of real time", patience)
	if len(culprits) == 0 {
		b.WriteString(", although all goroutines wait: the step is too much work for this machine")
	}
	for i, g := range culprits {
		if i == 3 {
			fmt.Fprintf(&b, "\n… and %d more goroutines", len(culprits)-i)
			break
		}
		fmt.Fprintf(&b, "\n%s holds up the clock. ", g)
		for _, remedy := range remedies {
			if strings.HasPrefix(g.state, remedy.state) {
				b.WriteString(remedy.why)
				break
			}
		}
	}
	return b.String()
}
