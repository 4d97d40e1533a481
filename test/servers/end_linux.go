package servers

import (
	"os/exec"
	"syscall"
)

// endWithUs has the server end when the test's process does, however that
// ends: one that panics cleans nothing up.
func endWithUs(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
