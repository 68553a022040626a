// Package place says where the gate keeps its things.
//
// Everything lives under one directory: GATEHOUSE_HOME where that is set, else
// the user's data directory. The machine's own policy is the exception; it
// belongs to the administrator.
//
// The package only names places. It creates and opens nothing, so that a
// client that is started by an agent never touches the gate's files by
// accident.
//
// Start reading at [Find].
package place
