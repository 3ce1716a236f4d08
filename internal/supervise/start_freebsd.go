package supervise

import "syscall"

func becomeSubreaper() {}

func dieWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }

func bindToParent() {}
