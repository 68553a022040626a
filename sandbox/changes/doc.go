// Package changes shows what a confined run did in its overlay and takes over
// what a person accepts.
//
// A run with an overlay leaves its root untouched; everything it did is in a
// layer beside it. Seal reads that layer once the run's processes are dead,
// writes down every entry with its hash and the hash of the file it would
// replace, and closes the layer. What is shown, and what is accepted, is bound
// to the hash over all of that: a layer that changed after the diff, or a file
// that changed under it, is refused.
//
// Accepting walks both trees with openat2 and follows no link at all, so a link
// planted in either cannot redirect a write. Special files, set-id bits, links
// that lead out, and names with control characters are never taken over;
// protected names (hooks, settings, start-up files) only when each is named.
//
// What it never does: run a program on either tree, or let anything inside the
// sandbox push a change out. Start reading at Seal, then Set.Accept.
package changes
