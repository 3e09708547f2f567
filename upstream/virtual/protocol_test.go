package virtual

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// converse sends a whole input to the engine and returns its whole output.
func converse(t *testing.T, lines ...string) []string {
	t.Helper()
	engine := exec.Command(os.Args[0])
	engine.Stdin = strings.NewReader(strings.Join(lines, "\n") + "\n")
	engine.Stderr = os.Stderr
	out, err := engine.Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(out)), "\n")
}

func TestTheSameRequestsHaveTheSameAnswers(t *testing.T) {
	conflict := `{"step":{"apply":[{"faults":{"updateScale":{"code":409,"reason":"Conflict",` +
		`"message":"no"}}},{"podMetrics":{"set":[{"pod":"web-0","template":"t0","containers":` +
		`[{"name":"app","usage":[["cpu","40"]]}]}]}}],"until":600000000000}}`
	lines := []string{}
	for range 3 {
		lines = append(lines, openLine, firstStepLine(5), conflict,
			`{"step":{"apply":["restartController",{"deleteHpa":{"name":"web"}}],"until":700000000000}}`,
			`{"close":{}}`)
	}
	first := converse(t, lines...)
	if len(first) != 1+len(lines) {
		t.Fatalf("%d answers", len(first))
	}
	for i := range 5 {
		if first[1+i] != first[6+i] || first[1+i] != first[11+i] {
			t.Errorf("scenarios of one process differ:\n%s\n%s", first[1+i], first[6+i])
		}
	}
	for range 3 {
		if again := converse(t, lines...); strings.Join(again, "\n") != strings.Join(first, "\n") {
			t.Error("two processes differ")
		}
	}
}

func TestInvalidRequestsAreAnsweredAndTheHostContinues(t *testing.T) {
	out := converse(t, `{"step":{"until":0}}`, `{"nonsense":1}`, `{`,
		strings.Replace(openLine, `"tolerance":0.1,`, ``, 1), openLine, openLine,
		`{"step":{"apply":[{"setPods":[{"name":"a","template":"none","phase":"Running"}]}],"until":0}}`,
		`{"step":{"apply":[],"until":0}}`, `{"close":{}}`, openLine, `{"close":{}}`)
	for i, has := range []string{
		"hello", "no scenario is open", `unknown field \"nonsense\"`, "failed",
		"flags are missing", "opened", "open already", `no template \"none\"`,
		`{"now":0,"api":[],"log":[]}`, "closed", "opened", "closed",
	} {
		if !strings.Contains(out[i], has) {
			t.Errorf("answer %d is %s, without %s", i, out[i], has)
		}
	}
}

// The other end reads finished answers while the host processes further requests.
func TestAnswersAreWrittenWhileRequestsArePending(t *testing.T) {
	var out bytes.Buffer
	h := newHost(strings.NewReader(strings.Repeat("{}\n", 1000)), &out)
	if _, err := h.line(); err != nil {
		t.Fatal(err)
	}
	h.buf = bytes.Repeat([]byte{'x'}, 1000)
	for answers := 1; out.Len() == 0; answers++ {
		if answers > 20 {
			t.Fatalf("%d answers of %d bytes are not written", answers, len(h.buf))
		}
		if err := h.answer(); err != nil {
			t.Fatal(err)
		}
	}
}

// The clock stands still between requests, regardless of the wall clock.
func TestTimeStandsStillBetweenRequests(t *testing.T) {
	engine := exec.Command(os.Args[0])
	in, err := engine.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	engine.Stdout = &out
	if err := engine.Start(); err != nil {
		t.Fatal(err)
	}
	steps := []string{openLine, firstStepLine(2), `{"step":{"until":0}}`, `{"step":{"until":1}}`}
	for i, line := range steps {
		time.Sleep(time.Duration(i) * 100 * time.Millisecond)
		fmt.Fprintln(in, line)
	}
	in.Close()
	if err := engine.Wait(); err != nil {
		t.Fatal(err)
	}
	if !strings.HasSuffix(out.String(), "{\"stepped\":{\"now\":0,\"api\":[],\"log\":[]}}\n"+
		"{\"stepped\":{\"now\":1,\"api\":[],\"log\":[]}}\n") {
		t.Error(out.String())
	}
}

// An endless step ends when the other end of the pipe is closed.
func TestAnEndlessStepEndsWithTheInput(t *testing.T) {
	engine := exec.Command(os.Args[0])
	engine.Stdin = strings.NewReader(strings.Join([]string{openLine, firstStepLine(2),
		`{"step":{"until":9000000000000000000}}`, ""}, "\n"))
	began := time.Now()
	out, err := engine.Output()
	took := time.Since(began)
	// Old releases reject this HPA, so that the step has no reconciles.
	refused := bytes.Contains(out, []byte("is registered for version"))
	begun := refused || bytes.Contains(out, []byte("listPodMetrics"))
	if err == nil || !begun || took > 10*time.Second {
		t.Errorf("%v after %v: %s", err, took, out)
	}
}

func TestStrings(t *testing.T) {
	for text, want := range map[string]string{
		"a\"b\\c\n\x01é\xff": `"a\"b\\c\n\u0001é�"`,
		"":                   `""`,
	} {
		if got := string(appendString(nil, text)); got != want {
			t.Errorf("%q: %s", text, got)
		}
	}
	if r := (&reader{data: []byte(` "a\u00e9\"b" `)}); r.str() != `aé"b` || r.end() != nil {
		t.Error(r.err)
	}
}
