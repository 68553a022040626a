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

// globs matches one entry. A malformed glob matches nothing here; the parser
// refuses it when the element is read.
func globs(entry, name string) bool {
	ok, err := path.Match(entry, name)
	return ok && err == nil
}
