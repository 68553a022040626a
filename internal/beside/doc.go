// Package beside finds the small programs that are shipped in the main
// program's folder, and makes copies of them that nobody can change.
//
// A program that is started in the gate's name must be one that nobody else
// could have put there ([Trusted]), and must stay what it was when the gate
// began: a file on disk is replaced by an upgrade while the gate runs, or
// rewritten by whoever runs under the same user. So the gate starts a sealed
// copy in memory ([Copy]).
//
// It never starts anything. Start reading at [Find].
package beside
