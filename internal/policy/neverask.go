package policy

import (
	"bytes"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/facts"
)

// NeverAskError says why no rule can be written that lets a call through in
// the future.
type NeverAskError struct{ Reason string }

// Error returns the reason.
func (e *NeverAskError) Error() string {
	return "no narrow rule covers this call: " + e.Reason
}

// Public returns the reason, which may be shown.
func (e *NeverAskError) Public() string { return e.Error() }

// HTTPStatus returns the status that fits.
func (e *NeverAskError) HTTPStatus() int { return 409 }

func noRule(format string, args ...any) (Rule, error) {
	return Rule{}, &NeverAskError{fmt.Sprintf(format, args...)}
}

// NeverAsk writes the narrowest rule that lets a call like this one through
// without asking: this very command, and the very paths and hosts that it
// needs, or those of the scopes that a person chose. Whether the rule is enough
// is for the policy to say that has it.
func NeverAsk(c *call.Call, f *facts.Facts, scopes []call.Need, by string) (Rule, error) {
	switch {
	case c.Kind != call.External:
		return noRule("rules do not reach the gate's own operations")
	case c.Operation == call.OpPlan:
		return noRule("a plan is approved as a whole, every time")
	case f.Irreversible || len(f.Destroys) > 0:
		return noRule("what cannot be undone is asked about every time")
	}
	r := Rule{Operation: c.Operation, Level: call.AutoApprove, Reason: by + " said to never ask this again"}
	if strings.ContainsAny(r.Operation, "*?") {
		return noRule("the tool has a star or question mark in its name")
	}
	if c.Operation == call.OpShell {
		if len(f.Commands) != 1 {
			return noRule("it is more than one command; rules are about one")
		}
		if r.Command = f.Commands[0]; strings.ContainsAny(r.Command, "*?") {
			return noRule("the command has a star or question mark in it, which a rule would read as a pattern")
		}
	}
	if len(scopes) == 0 {
		scopes = f.Needs
	}
	if err := r.scope(scopes, f.Workspace); err != nil {
		return Rule{}, err
	}
	r.examples()
	r.Name = "never ask: " + firstOf(r.Command, r.Path, r.Host, r.Operation)
	if len(r.Name) > 120 {
		r.Name = strings.ToValidUTF8(r.Name[:120], "")
	}
	return r, nil
}

// scope adds the one path and the one host that the needs name.
func (r *Rule) scope(needs []call.Need, workspace string) error {
	for _, n := range needs {
		if n.Capability == call.ProcExec {
			continue // the command or the tool stands for it
		}
		if n.Capability == call.SecretsAccess {
			return &NeverAskError{"secrets are asked about every time"}
		}
		if n.Scope == "" {
			return &NeverAskError{"it does not say what it touches"}
		}
		var field *string
		scope := n.Scope
		switch scopeKind(n.Capability, n.Scope) {
		case kindPath:
			field = &r.Path
			tree, deep := strings.CutSuffix(scope, "/**")
			if strings.ContainsAny(tree, "*?[]{}\\") {
				return &NeverAskError{"a path has characters in it that a rule would read as a pattern"}
			}
			// A rule of the user's holds everywhere: "./a" would be that of
			// every project.
			if !path.IsAbs(tree) {
				if workspace == "" {
					return &NeverAskError{"it does not say in which directory it works"}
				}
				tree = path.Join(workspace, tree)
			}
			if scope = tree; deep {
				scope += "/**"
			}
		case kindHost:
			field = &r.Host
		default:
			continue
		}
		if *field != "" && *field != scope {
			return &NeverAskError{"it touches more than one place; take an offer that holds all of them"}
		}
		*field = scope
	}
	return nil
}

// examples adds what the rule must match, and what is close and must not be.
func (r *Rule) examples() {
	switch {
	case r.Command != "":
		r.Matches, r.Misses = []string{r.Command}, []string{r.Command + " --all", "sudo " + r.Command}
	case r.Path != "":
		if tree, deep := strings.CutSuffix(r.Path, "/**"); deep {
			r.Matches, r.Misses = []string{tree + "/example"}, []string{tree + "-other/example", path.Dir(tree)}
		} else {
			r.Matches, r.Misses = []string{r.Path}, []string{r.Path + ".other", path.Dir(r.Path)}
		}
	case r.Host != "":
		r.Matches, r.Misses = []string{r.Host}, []string{"not-" + r.Host}
	default:
		r.Matches, r.Misses = []string{r.Operation}, []string{r.Operation + "_other"}
	}
	r.Misses = slices.DeleteFunc(r.Misses, func(s string) bool { return s == "/" || s == "" })
}

func firstOf(list ...string) string {
	for _, s := range list {
		if s != "" {
			return s
		}
	}
	return ""
}

// AppendRule returns a policy file with a rule at its end. The rest of the file
// stays as it is, to the byte.
func AppendRule(content []byte, r Rule, comment string) ([]byte, error) {
	text, err := toml.Marshal(struct {
		Rules []Rule `toml:"rules"`
	}{[]Rule{r}})
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	if len(bytes.TrimSpace(content)) == 0 {
		content = []byte("version = 1\n")
	}
	out.Write(content)
	if !bytes.HasSuffix(content, []byte("\n")) {
		out.WriteByte('\n')
	}
	fmt.Fprintf(&out, "\n# %s\n%s", strings.Map(printable, comment), text)
	return out.Bytes(), nil
}

// printable keeps a comment on its line.
func printable(r rune) rune {
	if r < ' ' || r == 0x7f || r == 0x2028 || r == 0x2029 {
		return ' '
	}
	return r
}
