package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// tree is the module of upstream.
const tree = "k8s.io/kubernetes/"

// mutated are the packages of the controller's own decisions.
var mutated = []string{
	tree + "pkg/controller/podautoscaler",
	tree + "pkg/controller/podautoscaler/metrics",
	tree + "pkg/controller/podautoscaler/monitor",
}

// listed is a package as `go list` describes it.
type listed struct {
	ImportPath string
	Dir        string
	Export     string
	GoFiles    []string
}

// sourcePackage is a parsed and type-checked package.
type sourcePackage struct {
	path  string
	dir   string
	fset  *token.FileSet
	files map[string]*ast.File // by name
	texts map[string][]byte
	info  *types.Info
	types *types.Package
}

// load type-checks the mutated packages against the export data of their dependencies.
func load(upstream string, flags []string) ([]*sourcePackage, error) {
	args := append([]string{"list", "-export", "-deps", "-test", "-json=ImportPath,Dir,Export,GoFiles"}, flags...)
	command := exec.Command("go", append(args, "./virtual")...)
	command.Dir = upstream
	command.Stderr = os.Stderr
	out, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	found := map[string]listed{}
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var one listed
		if err := decoder.Decode(&one); err == io.EOF {
			break
		} else if err != nil {
			return nil, fmt.Errorf("go list: %w", err)
		}
		found[one.ImportPath] = one
	}
	var packages []*sourcePackage
	for _, path := range mutated {
		one, ok := found[path]
		if !ok {
			return nil, fmt.Errorf("the virtual host does not contain %s", path)
		}
		checked, err := check(one, found)
		if err != nil {
			return nil, err
		}
		packages = append(packages, checked)
	}
	return packages, nil
}

// check parses and type-checks a package.
func check(one listed, found map[string]listed) (*sourcePackage, error) {
	p := &sourcePackage{
		path: one.ImportPath, dir: one.Dir, fset: token.NewFileSet(),
		files: map[string]*ast.File{}, texts: map[string][]byte{},
		info: newInfo(),
	}
	var files []*ast.File
	for _, name := range one.GoFiles {
		text, err := os.ReadFile(filepath.Join(one.Dir, name))
		if err != nil {
			return nil, err
		}
		file, err := parser.ParseFile(p.fset, name, text, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		p.files[name], p.texts[name] = file, text
		files = append(files, file)
	}
	exported := func(path string) (io.ReadCloser, error) {
		file := found[path].Export
		if file == "" {
			return nil, fmt.Errorf("no export data of %s", path)
		}
		return os.Open(file)
	}
	config := types.Config{Importer: importer.ForCompiler(p.fset, "gc", exported)}
	var err error
	p.types, err = config.Check(one.ImportPath, p.fset, files, p.info)
	return p, err
}

func newInfo() *types.Info {
	return &types.Info{
		Types:      map[ast.Expr]types.TypeAndValue{},
		Uses:       map[*ast.Ident]types.Object{},
		Defs:       map[*ast.Ident]types.Object{},
		Selections: map[*ast.SelectorExpr]*types.Selection{},
		Scopes:     map[ast.Node]*types.Scope{},
		Implicits:  map[ast.Node]types.Object{},
	}
}

// treePath returns the path of a file in the source tree of upstream.
func (p *sourcePackage) treePath(name string) string {
	return strings.TrimPrefix(p.path, tree) + "/" + name
}
