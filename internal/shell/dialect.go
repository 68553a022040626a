package shell

import (
	"strings"
	"unicode"
)

// characters notes what makes a text look different from what it is, or is
// read differently by different shells.
func (a *analyzer) characters(text string) {
	for i := 0; i < len(text); i++ {
		c := text[i]
		if c >= 0x80 {
			a.unicode(text[i:], i)
			return
		}
		if c < 0x20 && c != '\n' && c != '\t' || c == 0x7f {
			a.note(NoteControl, "contains a control character", Span{i, i + 1})
			if c == 0 {
				a.out.Complete = false
			}
			return
		}
	}
}

// unicode is characters for the part of a text that is not ASCII.
func (a *analyzer) unicode(text string, at int) {
	for i, r := range text {
		switch {
		case r == '\n' || r == '\t':
		case unicode.IsControl(r), unicode.Is(unicode.Cf, r), unicode.Is(unicode.Zl, r), unicode.Is(unicode.Zp, r):
			a.note(NoteControl, "contains a control or invisible character", Span{at + i, at + i + 1})
			return
		case r > 0x7f && unicode.IsSpace(r):
			a.note(NoteControl, "contains a space that is no separator", Span{at + i, at + i + 1})
			return
		}
	}
}

var powerShellWords = []string{
	"Remove-Item", "Get-ChildItem", "Get-Content", "Set-Content", "Get-Process", "Stop-Process", "Write-Host", "Write-Output",
	"Invoke-WebRequest", "Invoke-Expression", "Invoke-RestMethod", "New-Item", "Copy-Item", "Move-Item", "Select-String",
	"Where-Object", "ForEach-Object", "Select-Object", "Out-File", "Test-Path", "Start-Process", "Set-Location", "Get-Location",
	"Format-Volume", "Clear-Content", "$env:", "$PSVersionTable", "[System.", "[IO.",
}

var zshWords = []string{"setopt ", "unsetopt ", "autoload ", "zmodload ", "zstyle ", "emulate "}

// foreignDialect recognises text of a shell that is not analysed. The first
// word decides for PowerShell, because its names are ordinary arguments
// elsewhere; the parser sees most of zsh.
func foreignDialect(text string, given Dialect) (Dialect, string) {
	if given == Zsh || given == PowerShell {
		return given, "text for " + given.String() + " is not analysed"
	}
	first := strings.TrimLeft(text, " \t\n(&")
	if first == "" {
		return given, ""
	}
	if c := first[0]; c >= 'A' && c <= '[' || c == '$' {
		for _, w := range powerShellWords {
			if strings.HasPrefix(first, w) {
				return PowerShell, "looks like PowerShell"
			}
		}
	} else {
		for _, w := range zshWords {
			if w[0] == c && strings.HasPrefix(first, w) {
				return Zsh, "looks like zsh"
			}
		}
	}
	return given, ""
}
