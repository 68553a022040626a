// Package content looks at the text of calls and element files before anything is decided on them,
// and takes secrets out of what is stored.
//
// [Scan] and [ScanJSON] report findings: injected instructions, credentials, command and path
// attacks, and Unicode that hides something. The text is read as it is, as a reader would perceive
// it (invisible characters gone, look-alikes folded; see match.Folded) and with common encodings
// undone, two levels deep. A finding names rule, severity, form and the bytes of the original text
// it is about.
//
// The package never rewrites what it scans. Turning an attack into clean text would only make it
// work; refusing or asking is the gate's business. Severity says which: critical is for what no
// honest call contains and is denied, high is shown to a person, medium and low are recorded.
// Ordinary code, documentation about security and commands that merely contain a word stay below
// high; testdata holds the texts that must pass and the attacks that must not.
//
// One pass of a keyword automaton finds the places worth a closer look; only there, in bounded
// windows, are expressions tried. Time is linear in the text, whatever the text is.
//
// [CheckYAML] refuses documents that would expand, nest or repeat beyond limits, before they are
// decoded. [Redactor] replaces secrets by markers and leaves salted commitments behind, so that
// whoever still holds a value can prove that it was the one.
//
// Start reading at scan.go; rules are data in rules_*.go; redact.go stands by itself.
package content
