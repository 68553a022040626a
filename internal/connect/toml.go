package connect

import (
	"fmt"
	"strconv"
	"strings"
)

// Settings in TOML are edited as text: our part stands between two lines, and
// the rest, comments included, stays as it is.
const (
	blockBegin = "# >>> gatehouse"
	blockEnd   = "# <<< gatehouse"
)

// withoutBlock takes our part out. A file may have several parts of ours, which
// differ by their marks.
func withoutBlock(text, mark string) (string, error) {
	start := strings.Index(text, blockBegin+mark+"\n")
	if start < 0 {
		return text, nil
	}
	stop := strings.Index(text[start:], blockEnd+mark)
	if stop < 0 {
		return "", fmt.Errorf("it has a line %q without %q", blockBegin+mark, blockEnd+mark)
	}
	stop += start + len(blockEnd+mark)
	if stop < len(text) && text[stop] == '\n' {
		stop++
	}
	before := text[:start]
	if strings.HasSuffix(before, "\n\n") { // the empty line that came with it
		before = before[:len(before)-1]
	}
	return before + text[stop:], nil
}

// WithBlock puts a part of ours at the end of a TOML text, where a table of its
// own can stand, in place of an earlier one with the same mark. What is empty is
// left out.
func WithBlock(text, mark, block string) (string, error) {
	text, err := withoutBlock(text, mark)
	if err != nil || block == "" {
		return text, err
	}
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	if text != "" {
		text += "\n"
	}
	return text + blockBegin + mark + "\n" + strings.TrimRight(block, "\n") + "\n" + blockEnd + mark + "\n", nil
}

// tomlFile edits a settings file in TOML.
func tomlFile(path string, block func(rest string) (string, error)) edit {
	return edit{path, func(old, _ []byte) ([]byte, error) {
		rest, err := withoutBlock(string(old), "")
		if err != nil {
			return nil, err
		}
		text, err := block(rest)
		if err != nil {
			return nil, err
		}
		made, err := WithBlock(rest, "", text)
		if err != nil || made == "" {
			return nil, err
		}
		return []byte(made), nil
	}}
}

// vibeFiles connects Mistral Vibe. Its strict hooks deny when they fail.
func vibeFiles(p Place, h *Hook) ([]edit, []string, error) {
	path, err := under(p, ".vibe/hooks.toml", ".vibe/hooks.toml", "")
	if err != nil {
		return nil, nil, err
	}
	return []edit{tomlFile(path, func(string) (string, error) {
		if h == nil {
			return "", nil
		}
		var out strings.Builder
		for _, kind := range []string{"before_tool", "after_tool"} {
			fmt.Fprintf(&out, "[[hooks]]\nname = %q\ntype = %q\ncommand = %s\nmatch = \"*\"\ntimeout = %d\nstrict = %t\n\n",
				"gatehouse "+kind, kind, strconv.Quote(h.line("vibe", ownDeadline)), hostTimeout, kind == "before_tool")
		}
		return out.String(), nil
	})}, nil, nil
}
