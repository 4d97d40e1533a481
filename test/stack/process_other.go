//go:build !linux

package stack

import "syscall"

// childAttributes keeps the keyboard's signals from a child.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
