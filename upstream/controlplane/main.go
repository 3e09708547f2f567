// Package main is etcd, kube-apiserver and kube-controller-manager of a Kubernetes release in one
// program: `controlplane kube-apiserver --secure-port=…` is what `kube-apiserver --secure-port=…`
// is elsewhere. Upstream's own commands are run, with the flags as they come; which ones those are,
// and when each is started, is for whoever starts it to say.
//
// Each of them lives as long as its standard input: whoever starts it holds the other end of a pipe,
// so that nothing is left running when that one dies, however it dies.
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

// endWithInput ends this process, as hard as it would be ended from outside.
func endWithInput() {
	_, _ = io.Copy(io.Discard, os.Stdin)
	os.Exit(1)
}

func fail(why string) {
	fmt.Fprintln(os.Stderr, why)
	os.Exit(2)
}
