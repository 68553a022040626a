package element

import "path"

// matchList returns the entry of a list that names the operation, by its
// canonical name, an alias or a glob over either. Of several it returns the
// last in byte order, which puts names before globs: the vote says which
// entry applies, and must not depend on the order in which they are listed.
func matchList(list []string, name string, aliases []string) (entry string, ok bool) {
	for _, e := range list {
		if (!ok || e > entry) && names(e, name, aliases) {
			entry, ok = e, true
		}
	}
	return entry, ok
}

// names says whether an entry means the operation.
func names(entry, name string, aliases []string) bool {
	if globs(entry, name) {
		return true
	}
	for _, alias := range aliases {
		if globs(entry, alias) {
			return true
		}
	}
	return false
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
