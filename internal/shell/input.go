package shell

// Target is what a text is typed into.
type Target uint8

// The targets of input.
const (
	TargetUnknown Target = iota // nothing is known of the process
	TargetShell                 // a shell
	TargetPython                // a Python interpreter or notebook kernel
	TargetNode                  // a JavaScript interpreter
	TargetSQL                   // a database client
)

// AnalyzeInput says what it would do to send a text to a running process.
// It is a command of its own: the text is code of the target. Whatever the
// process was doing is not known, so nothing sent to it is safe.
func AnalyzeInput(text string, target Target, opts Options) *Analysis {
	a := newAnalyzer(opts)
	span := Span{0, len(text)}
	if len(text) > MaxBytes {
		a.incomplete(NoteLimit, "the input is longer than 64 KiB", Span{MaxBytes, len(text)})
		text = text[:MaxBytes]
	}
	a.st.cwd = directory{lost: true} // the process may be anywhere
	a.begin(span)
	a.out.Commands[a.cur].Program = target.String()
	a.add(Effect{Kind: KindExecute, Class: ClassUnknown, Span: span, Why: "sends input to a running " + target.String()})
	w := word{text: text, known: true, span: span}
	switch target {
	case TargetPython:
		a.code("python", &w)
	case TargetNode:
		a.code("node", &w)
	case TargetSQL:
		a.sql(&w)
	default:
		// A process that is not known may be a shell: its code is the worst to send.
		a.shellCode(&w, target.String())
		if target == TargetUnknown {
			a.code("any", &w)
		}
	}
	a.cur = -1
	a.finish()
	return a.release()
}

// String names the target.
func (t Target) String() string {
	return [...]string{"process", "shell", "python", "node", "database client"}[t]
}
