package inrun

import (
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// patchArgs writes the changes that Codex shows as the patch that its tool was
// given, which is what its hook shows: the same patch is the same call. Nil if
// they cannot be read or a path could be taken for more than one.
func patchArgs(changes jsontext.Value) jsontext.Value {
	var list []struct {
		Path string `json:"path"`
		Kind struct {
			Type string  `json:"type"`
			Move *string `json:"move_path"`
		} `json:"kind"`
		Diff string `json:"diff"`
	}
	if json.Unmarshal(changes, &list) != nil || len(list) == 0 {
		return nil
	}
	var b strings.Builder
	b.WriteString("*** Begin Patch\n")
	for _, c := range list {
		head, signs := "", "+- @\\"
		switch c.Kind.Type {
		case "add":
			head, signs = "*** Add File: ", "" // the whole content
		case "update":
			head = "*** Update File: "
		case "delete":
			head = "*** Delete File: "
		}
		if head == "" || !oneLine(c.Path) || c.Kind.Move != nil && !oneLine(*c.Kind.Move) {
			return nil
		}
		b.WriteString(head + c.Path + "\n")
		if c.Kind.Move != nil {
			b.WriteString("*** Move to: " + *c.Kind.Move + "\n")
		}
		if c.Kind.Type != "delete" {
			writeDiff(&b, c.Diff, signs)
		}
	}
	b.WriteString("*** End Patch\n")
	args, err := json.Marshal(object{"command": b.String()})
	if err != nil {
		return nil
	}
	return args
}

// writeDiff writes lines so that each starts with a sign, because one that does
// not could be taken for the head of another file.
func writeDiff(b *strings.Builder, diff, signs string) {
	for line := range strings.Lines(diff) {
		line = strings.TrimSuffix(line, "\n")
		if signs == "" {
			b.WriteByte('+')
		} else if line == "" || strings.IndexByte(signs, line[0]) < 0 {
			b.WriteByte(' ')
		}
		b.WriteString(line + "\n")
	}
}

func oneLine(path string) bool { return path != "" && !strings.ContainsAny(path, "\r\n") }
