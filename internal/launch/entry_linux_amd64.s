#include "textflag.h"

// Where the kernel enters a program linked with -E (see Entry). It stands in
// for the runtime's own: code compiled from Go needs a place for the current
// goroutine in thread-local storage, and a stack bound in it that is never
// reached, and no more as long as it neither allocates nor waits.
TEXT ·entry(SB), NOSPLIT|NOFRAME|TOPFRAME, $0
	MOVQ	SP, BX
	ANDQ	$~15, SP
	SUBQ	$64, SP
	MOVQ	$158, AX	// arch_prctl
	MOVQ	$0x1002, DI	// ARCH_SET_FS
	LEAQ	·storage+64(SB), SI
	SYSCALL
	LEAQ	·routine(SB), CX
	MOVQ	CX, ·storage+56(SB)	// FS:-8
	MOVQ	BX, 0(SP)
	CALL	·enter(SB)
	MOVL	$125, DI
	MOVL	$231, AX	// exit_group
	SYSCALL
	INT	$3
