package element

import "path"

// matchList returns the first entry of a list that names the operation, by
// its canonical name, an alias or a glob over either.
func matchList(list []string, name string, aliases []string) (entry string, ok bool) {
	for _, entry := range list {
		if globs(entry, name) {
			return entry, true
		}
		for _, alias := range aliases {
			if globs(entry, alias) {
				return entry, true
			}
		}
	}
	return "", false
}

// malformed returns an entry that is no pattern, "" if all are.
func (l *Lists) malformed() string {
	for _, list := range [][]string{l.Allow, l.Confirm, l.Deny} {
		for _, entry := range list {
			if _, err := path.Match(entry, ""); err != nil {
				return entry
			}
		}
	}
	return ""
}

// globs matches one entry. An element with a malformed one is quarantined.
func globs(entry, name string) bool {
	ok, err := path.Match(entry, name)
	return ok && err == nil
}
