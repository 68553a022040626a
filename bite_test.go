package gatehouse_test

import (
	"fmt"
	"go/token"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"
)

// rules are the guard tests that look at parsed files.
var rules = []func([]*file, reporter){
	importsPointDownwards, testHelpersStayOut, librariesHaveOwners, coreIsPure,
	lengths, noInit, packagesAreIntroduced, exportedNamesAreDocumented, skipsSayWhy,
	goroutinesAreLeakChecked,
}

var wanted = regexp.MustCompile(`(?m)^// want: (.*)$`)

// TestRulesBite shows the rules a tree that breaks them. A rule that finds
// nothing there would find nothing anywhere.
func TestRulesBite(t *testing.T) {
	t.Parallel()
	archive, err := txtar.ParseFile("testdata/wrong.txtar")
	if err != nil {
		t.Fatal(err)
	}
	var (
		files []*file
		want  []string
	)
	set := token.NewFileSet()
	for _, a := range append(archive.Files, tooLongFile()) {
		for _, m := range wanted.FindAllSubmatch(a.Data, -1) {
			want = append(want, string(m[1]))
		}
		// The comments with what is wanted must not become package comments.
		f, err := parse(set, a.Name, wanted.ReplaceAll(a.Data, nil))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	var got []string
	for _, rule := range rules {
		rule(files, func(format string, args ...any) { got = append(got, fmt.Sprintf(format, args...)) })
	}
	for _, w := range want {
		i := slices.IndexFunc(got, func(g string) bool { return strings.Contains(g, w) })
		if i < 0 {
			t.Errorf("not reported: %s", w)
			continue
		}
		got = slices.Delete(got, i, i+1)
	}
	for _, g := range got {
		t.Errorf("reported though it is right, or missing among the wanted: %s", g)
	}
}

// tooLongFile has too many lines, in one function.
func tooLongFile() txtar.File {
	head := "// want: internal/gate/long.go has 706 lines, over 700\n// want: long has 702 lines, over 120\npackage gate\n\nfunc long() {\n"
	return txtar.File{Name: "internal/gate/long.go", Data: []byte(head + strings.Repeat("\t_ = 0\n", 700) + "}\n")}
}

func TestForbiddenWordsBite(t *testing.T) {
	t.Parallel()
	// Put together here, so that this file is not itself found.
	wrong := []string{
		"see /wo" + "rk/main/go.mod", "in /ro" + "ot/go/pkg/mod", "from https://proxy.go" + "lang.org/x",
		"registry.npm" + "js.org", "Co-authored" + "-by: someone", "written by an" + " assistant", "AI-" + "generated",
		"as DESIGN" + ".md says",
	}
	for _, place := range thisMachine() {
		wrong = append(wrong, "cd "+place)
	}
	for _, text := range wrong {
		found := 0
		forbiddenWords("x.md", []byte(text), func(string, ...any) { found++ })
		if found == 0 {
			t.Errorf("%q was not found", text)
		}
	}
	for _, text := range []string{
		"cat /root/.ssh/id_ed25519", "/home/user/project", "curl https://example.com/install.sh", "the agent wrote a file",
		"Claude Code asks for every command", "written by the daemon", "/workspace/main.go", "docs/design.md",
	} {
		forbiddenWords("x.md", []byte(text), func(format string, args ...any) {
			t.Errorf("legitimate: "+format, args...)
		})
	}
}
