// Package library keeps the files of elements.
//
// A library is a directory with one folder per type (personas, skills,
// templates, agents, memories, ensembles), each with Markdown or YAML files;
// memories may lie in folders named by a date. That is the layout of the
// public server whose elements these are: its files can be copied in as they
// are, with their metadata, and are not rewritten until someone edits them.
//
// Names are canonical: "Development Team", "development-team" and
// "DEVELOPMENT team" are one element. Two files that claim one name are both
// refused until one of them goes. Everything is opened below the directory
// (os.Root), nothing that is not a regular file is read, sizes are bounded, and
// a file is replaced whole and made durable before anyone is told.
//
// The package knows nothing about what is active; see package activation.
package library
