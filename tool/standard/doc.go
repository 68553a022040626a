// Package standard holds tools that most agents for code need, declared so
// that they can do no more than their names say: the state and the changes of a
// repository, and its tests.
//
// Each is a process that runs confined to the workspace, without network, and
// not at all where no sandbox is to be had. None takes a command line from the
// model: arguments are single words in places that were written here.
//
// They never write to the repository itself; tests may write where compilers
// keep their caches. A raw shell tool is deliberately not among them: linting
// declarations warns of one.
package standard
