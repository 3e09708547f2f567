package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"

	"kube-lockstep.dev/sdk/lockstep"
)

// module is the path of KEDA's module.
const module = "github.com/kedacore/keda/v2"

// definitions returns the manifests of KEDA's CustomResourceDefinitions, from the module.
var definitions = sync.OnceValues(func() (manifests [][]byte, err error) {
	list := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", module)
	list.Stderr = os.Stderr
	folder, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", list, err)
	}
	files, err := filepath.Glob(
		filepath.Join(strings.TrimSpace(string(folder)), "config", "crd", "bases", "*.yaml"))
	if err == nil && len(files) == 0 {
		err = fmt.Errorf("there are no CustomResourceDefinitions in %s", folder)
	}
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		manifest, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		manifests = append(manifests, manifest)
	}
	return manifests, nil
})

// prepare serves KEDA's custom resources.
func prepare(run *lockstep.Run) error {
	manifests, err := definitions()
	if err != nil {
		return err
	}
	for _, manifest := range manifests {
		if err := run.Server.ServeCRD(manifest); err != nil {
			return err
		}
	}
	return nil
}
