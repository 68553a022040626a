package shell

import (
	"fmt"

	"github.com/seed-3ebc6b8a/gatehouse/internal/shell/knowledge"
)

// CheckExamples analyses the examples of the programs that users added and
// returns those that do not get the class their file says.
func CheckExamples(kb *knowledge.Base) (wrong []string) {
	for _, p := range kb.Programs() {
		if !p.User {
			continue
		}
		for _, e := range p.Examples {
			if got := Analyze(e.Command, Options{Knowledge: kb}).Class.String(); got != e.Class {
				wrong = append(wrong, fmt.Sprintf("%s: the example %q is %s, not %s", p.Name, e.Command, got, e.Class))
			}
		}
	}
	return wrong
}
