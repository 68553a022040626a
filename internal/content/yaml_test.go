package content_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/seed-3ebc6b8a/gatehouse/internal/content"
)

// bomb nests aliases so that few lines stand for very many values.
func bomb(levels int) string {
	var b strings.Builder
	b.WriteString("a0: &a0 [x, x, x, x, x, x, x, x, x]\n")
	for i := 1; i <= levels; i++ {
		prev := string(rune('a'+i-1)) + "0"
		b.WriteString(string(rune('a'+i)) + "0: &" + string(rune('a'+i)) + "0 [" + strings.TrimSuffix(strings.Repeat("*"+prev+", ", 9), ", ") + "]\n")
	}
	return b.String()
}

func TestCheckYAML(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, text string
		want       error
	}{
		{"plain", "a: 1\nb: [x, y]\nc: {d: e}\n", nil},
		{"empty", "", nil},
		{"anchor and alias", "a: &x 1\nb: *x\n", nil},
		{"merge", "base: &b {a: 1}\nother:\n  <<: *b\n  c: 2\n", nil},
		{"text that looks like code", "cmd: \"eval(x)\"\nurl: file:///x\nnote: a & b & c\n", nil},
		{"line of dashes", "text: |\n  " + strings.Repeat("-", 2000) + "\nlist:\n" + strings.Repeat("-\n", 500), nil},
		{"three documents", "a: 1\n---\nb: 2\n---\nc: 3\n", nil},
		{"four documents", "a: 1\n---\nb: 2\n---\nc: 3\n---\nd: 4\n", content.ErrYAMLDocuments},
		{"contains itself", "a: &a [*a]", content.ErrYAMLCycle},
		{"bomb", bomb(3), content.ErrYAMLAliases},
		{"many aliases", "a: &a 1\nb: [" + strings.TrimSuffix(strings.Repeat("*a, ", 30), ", ") + "]", content.ErrYAMLAliases},
		{"same key", "a: 1\nb: 2\na: 3\n", content.ErrYAMLDuplicate},
		{"same key, other type", "1: a\n\"1\": b\n", content.ErrYAMLDuplicate},
		{"key is a list", "? [a, b]\n: c\n", content.ErrYAMLKey},
		{"language type", "x: !!python/object y", content.ErrYAMLTag},
		{"own type", "x: !Exec y", content.ErrYAMLTag},
		{"too large", strings.Repeat("#", 2<<20), content.ErrYAMLSize},
		{"too deep", strings.Repeat("[", 40) + strings.Repeat("]", 40), content.ErrYAMLDepth},
		{"far too deep", strings.Repeat("[", 500_000), content.ErrYAMLDepth},
		{"far too deep maps", strings.Repeat("{a: ", 200_000), content.ErrYAMLDepth},
		{"nested dashes", strings.Repeat("- ", 500_000) + "x", content.ErrYAMLDepth},
		{"nested question marks", strings.Repeat("? ", 500_000) + "x", content.ErrYAMLDepth},
		{"too many values", "[" + strings.Repeat("x,", 30_000) + "x]", content.ErrYAMLNodes},
		{"no YAML", "a: [", content.ErrYAMLSyntax},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			err := content.CheckYAML([]byte(c.text), content.Limits{})
			if !errors.Is(err, c.want) || c.want == nil && err != nil {
				t.Errorf("got %v, want %v", err, c.want)
			}
		})
	}
}

func TestCheckYAMLExpansion(t *testing.T) {
	t.Parallel()
	err := content.CheckYAML([]byte(bomb(6)), content.Limits{Aliases: 1000})
	if !errors.Is(err, content.ErrYAMLExpanded) {
		t.Errorf("a bomb within the alias limit: %v", err)
	}
	var at *content.YAMLError
	err = content.CheckYAML([]byte("a: 1\nb:\n  c: 1\n  c: 2\n"), content.Limits{})
	if !errors.As(err, &at) || at.Line != 4 || at.Column != 3 || !strings.Contains(err.Error(), "line 4") {
		t.Errorf("the error must say where: %v", err)
	}
}
