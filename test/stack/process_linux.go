package stack

import "syscall"

// childAttributes keeps the keyboard's signals from a child, and has the
// kernel kill it when its parent dies.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
