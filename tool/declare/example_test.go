package declare_test

import (
	"fmt"

	"github.com/seed-3ebc6b8a/gatehouse/tool/declare"
)

// Tools that are not written in Go are declared in YAML.
func ExampleParse() {
	set, err := declare.Parse([]byte(`
gatehouse: 1
tools:
  - name: mcp__files__write_file
    policy: {risk: medium, filesystem: {read: none, write: ["/srv/site/**"]}, network: none}
    arguments: {path: write, content: text}
    constraints: {maxInvocations: 50}
`))
	if err != nil {
		panic(err)
	}
	t := set.Tools[0]
	fmt.Println(t.Name, t.Policy.Risk, t.Policy.Filesystem.Write, t.Policy.Exec, t.Constraints.MaxInvocations)

	_, err = declare.Parse([]byte("gatehouse: 1\ntools:\n  - {name: x, polcy: {}}\n"))
	fmt.Println(err)
	// Output:
	// mcp__files__write_file medium /srv/site/** unspecified 50
	// line 3: unknown key "polcy"; did you mean "policy"?
}

// Covers compares meanings: what is narrower is covered, in whatever words.
func ExampleCovers() {
	fmt.Println(declare.Covers(declare.Write, declare.Only("/srv/**"), declare.Only("/srv/a/**", "/srv/b")))
	fmt.Println(declare.Covers(declare.Network, declare.Only("*.example.com"), declare.Only("example.com")))
	fmt.Println(declare.Covers(declare.Exec, declare.Stance{}, declare.Only("sh")))
	// Output:
	// true
	// false
	// true
}
