// Package policies holds the policy files that come with the gate, as data:
// the built-in profiles and the commented file that gatehouse init writes.
//
// They are ordinary policy files, read by the same parser as everyone's. The
// package parses nothing and decides nothing; package policy does. To see
// what a profile asks for, read its .toml file here.
package policies

import _ "embed" // the files below

//go:embed supervised.toml
var supervised []byte

//go:embed autonomous.toml
var autonomous []byte

//go:embed starter.toml
var starter []byte

// File is one shipped policy file.
type File struct {
	Name string
	Data []byte
}

// Profiles returns the files of the built-in profiles. The data is shared: do
// not change it.
func Profiles() []File {
	return []File{
		{Name: "built-in supervised.toml", Data: supervised},
		{Name: "built-in autonomous.toml", Data: autonomous},
	}
}

// Starter returns a copy of the commented starting policy.
func Starter() []byte { return append([]byte(nil), starter...) }
