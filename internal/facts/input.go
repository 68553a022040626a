package facts

import (
	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/shell"
)

// input describes text for something that runs already: it is code of
// whatever reads it. Which that is no host says, so the text is looked at for
// harm and confirmed every time.
func (x *extractor) input(strs []String) {
	x.unknown("sends input to a running process", true)
	for _, s := range strs {
		if !s.Key && inputFields[s.Name] {
			x.inputText(s)
		}
	}
}

// inputFields are the arguments that hold text for a running process.
var inputFields = fields("chars input text data command keys Input")

// inputText looks at text that is typed into a running process. No text is a
// look at its output, and an interrupt ends no more than the agent started.
func (x *extractor) inputText(s String) {
	if s.Text == "" || s.Text == "\x03" {
		if len(x.facts.Needs) == 0 {
			x.facts.Class, x.facts.Words, x.facts.TakesCode = "safe", "looks after a process it started", false
		}
		return
	}
	a := shell.AnalyzeInput(s.Text, shell.TargetUnknown, shell.Options{Home: x.base.Home, Knowledge: x.opts.Knowledge})
	x.facts.TakesCode, x.facts.Irreversible = true, a.Irreversible()
	x.facts.Class, x.facts.Words = a.Class.String(), "sends input to a running process: "+a.Words()
	evidence := call.Evidence{Where: s.Where, Text: s.Text}
	a.Effects(func(c *shell.Command, e *shell.Effect) bool {
		x.effect(c, e, evidence)
		return true
	})
	x.need(call.ProcExec, "", evidence)
}
