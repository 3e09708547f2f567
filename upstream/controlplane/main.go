// Package main is etcd, kube-apiserver and kube-controller-manager of a Kubernetes release in one
// program: `controlplane kube-apiserver --secure-port=…` does the same as `kube-apiserver
// --secure-port=…`. It runs upstream's own commands with unchanged flags; the caller chooses the
// flags and the order of the starts.
//
// Each program exits when its standard input ends: the caller holds the other end of a pipe, so that
// no program keeps running after the caller, however the caller ends.
package main

import (
	"fmt"
	"io"
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
)

func main() {
	if len(os.Args) < 2 {
		fail("usage: controlplane etcd|kube-apiserver|kube-controller-manager|all|hold …")
	}
	name, args := os.Args[1], os.Args[2:]
	if name != "all" && name != "hold" {
		go endWithInput()
	}
	switch name {
	case "etcd":
		etcdmain.Main(os.Args[1:])
	case "kube-apiserver":
		command := apiserver.NewAPIServerCommand()
		command.SetArgs(args)
		os.Exit(cli.Run(command))
	case "kube-controller-manager":
		command := controllermanager.NewControllerManagerCommand()
		command.SetArgs(args)
		os.Exit(cli.Run(command))
	case "all":
		all(args)
	case "hold":
		hold(args)
	default:
		fail("there is no " + name + " in it")
	}
}

// endWithInput ends this process, without any cleanup, when its standard input ends.
func endWithInput() {
	_, _ = io.Copy(io.Discard, os.Stdin)
	os.Exit(1)
}

func fail(why string) {
	fmt.Fprintln(os.Stderr, why)
	os.Exit(2)
}
