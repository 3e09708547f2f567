package main

import (
	"fmt"
	"go/ast"
	"go/types"
	"slices"
	"strings"
)

// others is the number of other variables with which a variable is exchanged, each in a mutant.
const others = 1

// use mutates the use of a variable: other variables of its type are used instead.
func (m *mutator) use(e *ast.Ident) {
	used, ok := m.info.Uses[e].(*types.Var)
	if !ok || used.IsField() || used.Parent() == m.types.Scope() || isLogger(used.Type()) {
		return
	}
	for _, other := range m.variablesOf(used, e) {
		id := m.add(e, variable, e.Name, other)
		m.wrap(e, fmt.Sprintf("mutantOther(%d, ", id), ", "+other+")")
	}
}

// variablesOf returns the names of the nearest variables of the same type that are visible.
func (m *mutator) variablesOf(used *types.Var, e *ast.Ident) []string {
	var found []*types.Var
	for scope := m.types.Scope().Innermost(e.Pos()); scope != nil; scope = scope.Parent() {
		if scope.Parent() == m.types.Scope() {
			break
		}
		for _, name := range scope.Names() {
			other, ok := scope.Lookup(name).(*types.Var)
			_, seen := scope.LookupParent(name, e.Pos())
			if ok && other != used && name != "_" && seen == types.Object(other) &&
				types.Identical(other.Type(), used.Type()) {
				found = append(found, other)
			}
		}
	}
	slices.SortFunc(found, func(a, b *types.Var) int { return int(b.Pos() - a.Pos()) })
	var names []string
	for _, other := range found[:min(others, len(found))] {
		// Another variable of the same name may hide it.
		_, visible := m.types.Scope().Innermost(e.Pos()).LookupParent(other.Name(), e.Pos())
		if visible == types.Object(other) {
			names = append(names, other.Name())
		}
	}
	return names
}

// fieldOf mutates the use of a field: the next field of the same type is used instead.
func (m *mutator) fieldOf(e *ast.SelectorExpr) {
	selection := m.info.Selections[e]
	if selection == nil || selection.Kind() != types.FieldVal || len(selection.Index()) != 1 || !m.isPath(e.X) {
		return
	}
	receiver := selection.Recv()
	if pointer, ok := receiver.Underlying().(*types.Pointer); ok {
		receiver = pointer.Elem()
	}
	structure, ok := receiver.Underlying().(*types.Struct)
	if !ok {
		return
	}
	index := selection.Index()[0]
	for i := 1; i < structure.NumFields(); i++ {
		other := structure.Field((index + i) % structure.NumFields())
		reachable := other.Exported() || other.Pkg() == m.types
		if reachable && types.Identical(other.Type(), selection.Type()) {
			source := m.source(e)
			changed := strings.TrimSuffix(source, e.Sel.Name) + other.Name()
			id := m.add(e, field, source, changed)
			m.wrap(e, fmt.Sprintf("mutantOther(%d, ", id), ", "+changed+")")
			return
		}
	}
}

// isPath reports whether an expression consists of names only, so that it can be repeated.
func (m *mutator) isPath(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.Ident:
		return true
	case *ast.SelectorExpr:
		return m.isPath(e.X)
	}
	return false
}
