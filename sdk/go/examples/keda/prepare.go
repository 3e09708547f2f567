package main

import (
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"kube-lockstep.dev/sdk/lockstep"
	"sigs.k8s.io/yaml"
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

var scaledObjects = schema.GroupResource{Group: "keda.sh", Resource: "scaledobjects"}

// prepare serves KEDA's custom resources, and creates the ScaledObject of the scenario.
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
	return createObject(run)
}

// createObject creates the ScaledObject in the file that is named like the scenario's.
func createObject(run *lockstep.Run) error {
	text, err := os.ReadFile(filepath.Join("objects", path.Base(run.Scenario)))
	if err != nil {
		return err
	}
	content := map[string]any{}
	if err := yaml.UnmarshalStrict(text, &content); err != nil {
		return err
	}
	_, err = run.Server.Create(scaledObjects, run.Namespace, content)
	return err
}
