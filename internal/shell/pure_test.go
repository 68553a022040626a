package shell_test

import (
	"testing"

	"github.com/seed-3ebc6b8a/gatehouse/internal/shell"
)

// TestInlineCodeThatOnlyReads: code is safe when its tokens prove it, and what
// tries to look like it is not.
func TestInlineCodeThatOnlyReads(t *testing.T) {
	t.Parallel()
	clean := fakeWorld{names: []string{"main.py", "README.md", "tests"}, settings: map[string][]shell.Setting{"/w": nil}}
	shadowed := fakeWorld{names: []string{"main.py", "re.py"}}
	words, world, trap := shell.Options{}, shell.Options{Cwd: "/w", World: clean}, shell.Options{Cwd: "/w", World: shadowed}
	const jsonRead = `python3 -c "import json,sys; print(json.load(sys.stdin)['a'])"`
	tests := []struct {
		cmd  string
		opts shell.Options
		safe bool
	}{
		{`python3 -c "print(1+1)"`, words, true},
		{`python3 -c 'print("a" * 3, [x for x in range(3)])'`, words, true},
		{`python3 -c 'import sys; print(len(sys.stdin.read().splitlines()))'`, words, true},
		{jsonRead, words, true},
		{"cd /tmp/x && " + jsonRead, words, false}, // ./json.py there may be anything
		{"python3 -m pip list", words, true},
		{"python3 -m pip list", world, true},
		{"python3 -m pip list", shell.Options{Cwd: "/w", World: fakeWorld{names: []string{"pip.py"}}}, false},
		{"python3 -m json.tool a.json", trap, false},
		{jsonRead, world, true},
		{jsonRead, trap, false},
		{`cat a.json | python3 -I -c "import json,sys; print(json.load(sys.stdin)['a'])"`, words, true},
		{`python3 -c "import json; d = json.load(open('a.json')); print(d['x'], sep='')"`, world, true},
		{`python3 -c "print(open('/etc/hosts').read())"`, words, true},
		{"python3 - <<'EOF'\nimport json\nwith open('a.json') as f:\n    d = json.load(f)\nfor k, v in d.items():\n    print(f'{k}: {v!r:>10}')\nEOF", world, true},
		{"python3 <<'EOF'\nimport re, sys\nfor line in sys.stdin:\n  m = re.search(r'(\\d+)', line)\n  if m: print(m.group(1))\nEOF", world, true},
		{`node -e "console.log(1+1)"`, words, true},
		{`node -p process.version`, words, true},
		{`perl -e 'print 1+1'`, words, true},
		{`ruby -e 'puts "x"'`, words, true},

		{`python3 -c "print(open('.env').read())"`, words, false}, // a secret
		{`python3 -c "open('x','w')"`, words, false},
		{`python3 -c "open('x', mode='w')"`, words, false},
		{`python3 -c "open(p)"`, words, false},
		{`python3 -c "print(open)"`, words, false},
		{`python3 -c "o = open; o('x','w')"`, words, false},
		{`python3 -c "import os; print(1)"`, world, false},
		{`python3 -c "import json as j, os"`, world, false},
		{`python3 -c "__import__('os').system('x')"`, words, false},
		{`python3 -c "exec('x')"`, words, false},
		{`python3 -c "if 0: print(exec=1)
exec('x')"`, words, false},
		{`python3 -c "().__class__"`, words, false},
		{`python3 -c "getattr(1,'x')"`, words, false},
		{`python3 -c "'{0.x}'.format(1)"`, words, false},
		{`python3 -c "import sys; sys.modules"`, words, false},
		{`python3 -c "import sys; sys.path.insert(0,'.')"`, words, false},
		{`python3 -c "print(f'{__import__(1)}')"`, words, false},
		{`python3 -c "print(f'{exec(1)}')"`, words, false},
		{`python3 -c "print(f'{open(\"x\",\"w\")}')"`, words, false},
		{`python3 -c "import json; json.dump(1, x)"`, world, false},
		{`python3 -c "import urllib.request"`, world, false},
		{`python3 -c "def f(): pass"`, words, false},
		{"python3 - <<'EOF'\n# coding: utf-7\nprint(1)\nEOF", words, false},
		{"python3 -c \"print(1) # x\rimport os\"", words, false},
		{`python3 -i -c "print(1)"`, words, false},
		{`python3 -W error::evil.X -c "print(1)"`, words, false},
		{`python3 -c "print(1)" -c`, words, true}, // the rest is data
		{`python -c "print(1)"`, words, true},
		{`python -c "print(input())"`, words, false}, // Python 2 would run what it reads
		{`python2 -c "execfile('x')"`, words, false},
		{"python2 -c 'print `1`'", words, false},
		{`python2 -c "exec 'x'"`, words, false},
		{`ipython -c "print(1)"`, words, false},
		{`python3 -c "print($X)"`, words, false},
		{`node -e "require('fs')"`, words, false},
		{`node -e "[]['constructor']['constructor']('x')()"`, words, false},
		{`node -e "console.log.constructor('x')()"`, words, false},
		{`node -e 'a = /"/; process.exit(); /"/'`, words, false},
		{`node -r ./x.js -e "console.log(1)"`, words, false},
		{"perl -e 'print `id`'", words, false},
		{`perl -e 'print "@{[system(1)]}"'`, words, false},
		{`perl -ne 'print 1' 'id|'`, words, false},
		{`perl -e 'print 1' 'id|'`, words, false},
		{`ruby -e 'puts "#{system 1}"'`, words, false},
		{`ruby -e 'system "x"'`, words, false},
	}
	for _, tt := range tests {
		a := shell.Analyze(tt.cmd, tt.opts)
		if got := a.Class == shell.ClassSafe; got != tt.safe {
			t.Errorf("%s: %s (%s), want safe %v", tt.cmd, a.Class, a.Words(), tt.safe)
		}
	}
	// What is sent to a running interpreter is never safe.
	if a := shell.AnalyzeInput("print(1)", shell.TargetPython, shell.Options{}); a.Class == shell.ClassSafe {
		t.Error("input to a running interpreter is safe")
	}
}
