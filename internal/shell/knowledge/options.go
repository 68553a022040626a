package knowledge

import (
	"fmt"
	"strings"
)

// parseOptions reads the option tokens of a table.
//
// Tokens are separated by white space; a line that begins with "# " is a
// comment; "@name" inserts a group of the same file. A token is the option's
// name followed, in this order, by
//
//	?          takes an optional value, attached only
//	=role      takes a value of that role; "=" alone means data
//	==role     takes a name and then a value of that role
//	!a+b       brings the effects a and b
//	^          takes the place of the first operand
//	$          takes the place of the last operand
//
// "-#" stands for any number (head -20).
func parseOptions(s *Spec, text string, groups map[string]string, depth int) error {
	if depth > 4 {
		return fmt.Errorf("option groups nest too deeply")
	}
	for line := range strings.Lines(text) {
		if strings.HasPrefix(strings.TrimSpace(line), "# ") {
			continue
		}
		for tok := range strings.FieldsSeq(line) {
			if tok[0] == '@' {
				g, ok := groups[tok[1:]]
				if !ok {
					return fmt.Errorf("unknown option group %q", tok)
				}
				if err := parseOptions(s, g, groups, depth+1); err != nil {
					return err
				}
				continue
			}
			o, err := parseOption(tok)
			if err != nil {
				return err
			}
			s.addOption(o)
		}
	}
	return nil
}

func (s *Spec) addOption(o *Option) {
	if s.Options == nil {
		s.Options = map[string]*Option{}
	}
	s.Options[o.Name] = o
	if len(o.Name) > 2 && o.Name[1] != '-' {
		s.Words = true
	}
	if len(o.Name) == 2 && o.Name[0] == '-' && o.Name[1] < 128 {
		s.short[o.Name[1]] = o
	}
}

// unlisted are options no table names, one for each letter.
var unlisted = func() (list [256]*Option) {
	for i := range list {
		list[i] = &Option{Name: "-" + string(rune(i))}
	}
	return list
}()

// Unlisted is the option of one letter for tables that accept any.
func Unlisted(c byte) *Option { return unlisted[c] }

func parseOption(tok string) (*Option, error) {
	if tok[0] != '-' && tok[0] != '+' {
		return nil, fmt.Errorf("option %q does not start with - or +", tok)
	}
	o := &Option{}
	rest := tok
	for {
		if strings.HasSuffix(rest, "^") {
			o.DropHead, rest = true, rest[:len(rest)-1]
		} else if strings.HasSuffix(rest, "$") {
			o.DropTail, rest = true, rest[:len(rest)-1]
		} else {
			break
		}
	}
	if i := strings.IndexByte(rest, '!'); i > 0 {
		for name := range strings.SplitSeq(rest[i+1:], "+") {
			d, err := parseDoes(name)
			if err != nil {
				return nil, fmt.Errorf("option %q: %w", tok, err)
			}
			o.Does = append(o.Does, d)
		}
		rest = rest[:i]
	}
	if i := strings.IndexByte(rest, '='); i > 0 {
		o.Arg = ArgRequired
		role, pair := strings.CutPrefix(rest[i+1:], "=")
		if pair {
			o.Arg = ArgPair
		}
		if role != "" {
			r, err := parseRole(role)
			if err != nil {
				return nil, fmt.Errorf("option %q: %w", tok, err)
			}
			o.Role = r
		}
		rest = rest[:i]
	}
	if i := strings.IndexByte(rest, '?'); i > 1 {
		o.Arg, rest = ArgOptional, rest[:i]
	}
	o.Name = rest
	return o, nil
}

// parseOperands reads an operand list: role names in order, at most one of
// them followed by "*" (any number of times).
func parseOperands(text string) (Operands, error) {
	var ops Operands
	for tok := range strings.FieldsSeq(text) {
		name, star := strings.CutSuffix(tok, "*")
		r, err := parseRole(name)
		if err != nil {
			return ops, err
		}
		switch {
		case star && ops.Repeat != nil:
			return ops, fmt.Errorf("operands %q repeat twice", text)
		case star:
			ops.Repeat = &r
		case ops.Repeat != nil:
			ops.Tail = append(ops.Tail, r)
		default:
			ops.Head = append(ops.Head, r)
		}
	}
	return ops, nil
}
