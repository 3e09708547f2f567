package lockstep

import "testing"

// A program that ends after the first of several scenarios must not pass.
func TestResultsRequireTheSummary(t *testing.T) {
	one := `{"id":"a","verdict":"conforms"}` + "\n"
	if results, err := readResults[Outcome]([]byte(one)); err == nil {
		t.Errorf("%+v", results)
	}
	results, err := readResults[Outcome]([]byte(one + `{"summary":{"scenarios":1}}` + "\n"))
	if err != nil || len(results) != 1 {
		t.Errorf("%+v %v", results, err)
	}
}
