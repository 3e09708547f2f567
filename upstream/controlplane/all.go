package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
)

// all starts what a file lists, for places where nobody else could: in a container. The file is a
// list of command lines for this program. When one of them ends, or a signal comes, all end.
func all(args []string) {
	if len(args) != 1 {
		fail("usage: controlplane all FILE")
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
		// The pipe's other end closes with this process.
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
