package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"
)

// all starts several programs, for a container that has no other way to start them.
// The file is a list of command lines for this program. When a program ends, or on a signal, all
// programs end. With a second file, it first waits for that file, which `hold` creates.
func all(args []string) {
	if len(args) != 1 && len(args) != 2 {
		fail("usage: controlplane all FILE [HELD]")
	}
	if len(args) == 2 {
		waitFor(args[1])
	}
	text, err := os.ReadFile(args[0])
	if err != nil {
		fail(err.Error())
	}
	var commands [][]string
	if err := json.Unmarshal(text, &commands); err != nil {
		fail(args[0] + ": " + err.Error())
	}
	self, err := os.Executable()
	if err != nil {
		fail(err.Error())
	}
	ended := make(chan string)
	for _, command := range commands {
		child := exec.Command(self, command...)
		child.Stdout, child.Stderr = os.Stdout, os.Stderr
		// The other end of the pipe closes with this process.
		if _, err := child.StdinPipe(); err != nil {
			fail(err.Error())
		}
		if err := child.Start(); err != nil {
			fail(err.Error())
		}
		go func() { ended <- fmt.Sprintf("%s has ended: %v", command[0], child.Wait()) }()
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	select {
	case <-signals:
	case why := <-ended:
		fail(why)
	}
}

// waitFor waits for the file of `hold`. It fails after half a minute: the process that started the
// container has then ended.
func waitFor(held string) {
	for range 600 {
		if _, err := os.Stat(held); err == nil {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	fail("timed out waiting for `controlplane hold`: the process that started this container has ended")
}

// hold lets a container start, and stops it when the standard input ends. The first process of the
// container can't detect the end of the process that started the container: its own standard input
// does not end then.
func hold(args []string) {
	if len(args) != 1 {
		fail("usage: controlplane hold HELD")
	}
	if err := os.WriteFile(args[0], nil, 0o600); err != nil {
		fail(err.Error())
	}
	_, _ = io.Copy(io.Discard, os.Stdin)
	_ = syscall.Kill(1, syscall.SIGTERM)
}
