package shell

import "mvdan.cc/sh/v3/syntax"

// QuickParse is the quick way to a tree, for comparing it with the parser's.
func QuickParse(text string) ([]*syntax.Stmt, bool) { return new(quick).parse(text) }
