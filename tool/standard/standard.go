package standard

import (
	"strings"

	"github.com/seed-3ebc6b8a/gatehouse/tool"
)

// readOnly is the policy of tools that look at the workspace.
var readOnly = &tool.Policy{
	Risk:        tool.Low,
	Filesystem:  tool.Filesystem{Read: tool.Only("./**"), Write: tool.None},
	Network:     tool.None,
	Environment: tool.None,
	Exec:        tool.Only("git"),
}

// gitSafe are options that keep git from running what a repository configures.
var gitSafe = []string{"git", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "protocol.allow=never", "--no-pager"}

// GitStatus tells what has changed in the workspace's repository.
var GitStatus = tool.Process(tool.Spec{
	Name: "git_status", Description: "What has changed in the repository, in short form.", Policy: readOnly,
}, func(struct{}) []string {
	return append(gitSafe[:len(gitSafe):len(gitSafe)], "status", "--short", "--branch")
})

// DiffInput is what git_diff takes.
type DiffInput struct {
	Path   string `json:"path,omitempty" gate:"read" jsonschema:"only changes of this file or directory"`
	Staged bool   `json:"staged,omitempty" jsonschema:"changes that are staged for the next commit"`
}

// GitDiff shows the changes in the workspace's repository.
var GitDiff = tool.Process(tool.Spec{
	Name: "git_diff", Description: "The changes in the repository that are not committed.", Policy: readOnly,
}, func(in DiffInput) []string {
	argv := append(gitSafe[:len(gitSafe):len(gitSafe)], "diff", "--no-ext-diff", "--no-textconv")
	if in.Staged {
		argv = append(argv, "--cached")
	}
	if in.Path != "" {
		argv = append(argv, "--", in.Path)
	}
	return argv
})

// TestInput is what run_tests takes.
type TestInput struct {
	Package string `json:"package,omitempty" gate:"text" jsonschema:"the package to test, such as ./internal/x; all if it is left out"`
	Run     string `json:"run,omitempty" gate:"text" jsonschema:"a regular expression: only tests whose names match"`
}

// RunTests runs the workspace's Go tests.
var RunTests = tool.Process(tool.Spec{
	Name: "run_tests", Description: "Run the tests of the workspace's Go module.",
	Policy: &tool.Policy{
		Risk:        tool.Medium,
		Filesystem:  tool.Filesystem{Read: tool.Only("./**", "~/go/pkg/mod/**", "/usr/local/go/**"), Write: tool.Only("~/.cache/go-build/**")},
		Network:     tool.None,
		Environment: tool.Only("PATH", "HOME", "GOFLAGS"),
		// Go starts compilers, linkers and what they made: no list would hold.
		Exec: tool.All,
	},
}, func(in TestInput) []string {
	pkg := in.Package
	switch {
	case pkg == "":
		pkg = "./..."
	case strings.HasPrefix(pkg, "-"):
		return nil // an option, such as -exec
	}
	return []string{"go", "test", "-run=" + in.Run, pkg}
})
