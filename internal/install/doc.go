// Package install makes the gate a service.
//
// For one person it is a service of theirs: the gate starts with the session or
// when a hook knocks, and stays advisory. For the system it is a service of a
// user of its own: binaries and units belong to root, the data directory to the
// gate's user alone, and its socket lies where nobody else can put another. That
// is what makes it hold an agent that runs as somebody else.
//
// A [Plan] lists the files and commands first; [Plan.Apply] carries it out, under
// another root for images and tests. systemd is served on Linux, launchd on a Mac.
//
// The gate has to see what agents would touch, so its service may read every
// file (CAP_DAC_READ_SEARCH) and name every process (CAP_SYS_PTRACE), and write
// only its own directory.
//
// Start reading at [System] and [User].
package install
