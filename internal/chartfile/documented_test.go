package chartfile

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// Whoever copies an example from the documentation has a file that can be imported.
func TestDocumented(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/charts.md")
	if err != nil {
		t.Fatal(err)
	}
	examples := regexp.MustCompile("(?s)```(?:csv|json)\n(.*?)```").FindAllStringSubmatch(string(text), -1)
	if len(examples) != 3 {
		t.Errorf("%d examples, want CSV, a chart and an event", len(examples))
	}
	for _, example := range examples {
		if _, err := Read(strings.NewReader(example[1])); err != nil {
			t.Errorf("%v in\n%s", err, example[1])
		}
	}
	for _, column := range columns {
		if !strings.Contains(string(text), "`"+column+"`") {
			t.Errorf("column %s isn't documented", column)
		}
	}
}
