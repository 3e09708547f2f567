package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
)

// deletable wraps a statement of a list, so that a mutant skips it.
func (m *mutator) deletable(s ast.Stmt) {
	id := m.add(s, deletion, m.source(s), "")
	m.wrap(s, fmt.Sprintf("if !mutantAt(%d) { ", id), " }")
}

func (m *mutator) list(statements []ast.Stmt) {
	for _, s := range statements {
		m.statement(s, true)
	}
}

// statement mutates a statement of a list. mayReturn is false for a return that can't be deleted.
func (m *mutator) statement(s ast.Stmt, mayReturn bool) {
	switch s := s.(type) {
	case *ast.ExprStmt:
		if m.onlyLogs(s.X) {
			m.logging++
			return
		}
		m.deletable(s)
		m.parts(s.X)
	case *ast.AssignStmt:
		m.assignment(s)
	case *ast.IncDecStmt:
		m.deletable(s)
		other := map[token.Token]string{token.INC: "--", token.DEC: "++"}[s.Tok]
		m.otherwise(s, m.source(s.X)+other)
	case *ast.ReturnStmt:
		if mayReturn {
			m.deletable(s)
		}
		for _, result := range s.Results {
			m.value(result)
		}
	case *ast.BranchStmt:
		if s.Tok != token.FALLTHROUGH {
			m.deletable(s)
		}
	case *ast.DeferStmt:
		m.deletable(s)
		m.parts(s.Call)
	case *ast.GoStmt:
		m.deletable(s)
		m.parts(s.Call)
	case *ast.DeclStmt:
		if d, ok := s.Decl.(*ast.GenDecl); ok && d.Tok == token.VAR {
			m.variables(d)
		}
	default:
		m.compound(s)
	}
}

// otherwise adds a mutant that runs another statement.
func (m *mutator) otherwise(s ast.Stmt, other string) {
	id := m.add(s, arithmetic, m.source(s), other)
	m.wrap(s, fmt.Sprintf("if mutantAt(%d) { %s } else { ", id, other), " }")
}

// compound mutates a statement that contains others.
func (m *mutator) compound(s ast.Stmt) {
	switch s := s.(type) {
	case *ast.BlockStmt:
		m.list(s.List)
	case *ast.IfStmt:
		m.header(s.Init)
		m.condition(s.Cond)
		m.list(s.Body.List)
		if s.Else != nil {
			m.compound(s.Else)
		}
	case *ast.ForStmt:
		m.header(s.Init)
		if s.Cond != nil {
			m.condition(s.Cond)
		}
		m.list(s.Body.List)
	case *ast.RangeStmt:
		m.value(s.X)
		m.list(s.Body.List)
	case *ast.SwitchStmt:
		m.header(s.Init)
		if s.Tag != nil {
			m.value(s.Tag)
		}
		m.clauses(s.Body, s.Tag == nil)
	case *ast.TypeSwitchStmt:
		m.header(s.Init)
		for _, clause := range s.Body.List {
			m.list(clause.(*ast.CaseClause).Body)
		}
	case *ast.SelectStmt:
		for _, clause := range s.Body.List {
			m.list(clause.(*ast.CommClause).Body)
		}
	case *ast.LabeledStmt:
		m.compound(s.Stmt)
	}
}

// clauses mutates the cases of a switch, which are conditions if it has no tag.
func (m *mutator) clauses(body *ast.BlockStmt, conditions bool) {
	for _, statement := range body.List {
		clause := statement.(*ast.CaseClause)
		for _, e := range clause.List {
			if conditions {
				m.condition(e)
			} else {
				m.value(e)
			}
		}
		m.list(clause.Body)
	}
}

// header mutates the values of a statement that is not in a list.
func (m *mutator) header(s ast.Stmt) {
	if assign, ok := s.(*ast.AssignStmt); ok {
		m.values(assign)
	}
}

// values mutates the right side of an assignment.
func (m *mutator) values(s *ast.AssignStmt) {
	for _, e := range s.Rhs {
		if len(s.Lhs) == len(s.Rhs) {
			m.value(e)
		} else {
			m.parts(e)
		}
	}
}

func (m *mutator) assignment(s *ast.AssignStmt) {
	for _, e := range s.Rhs {
		if t := m.typeOf(e); t != nil && isLogger(t) {
			return
		}
	}
	switch s.Tok {
	case token.DEFINE:
	case token.ASSIGN:
		m.deletable(s)
	default:
		m.deletable(s)
		other := map[token.Token]string{
			token.ADD_ASSIGN: " -= ", token.SUB_ASSIGN: " += ", token.MUL_ASSIGN: " /= ",
		}[s.Tok]
		if t := m.typeOf(s.Lhs[0]); other != "" && isNumber(t) {
			m.otherwise(s, m.source(s.Lhs[0])+other+m.source(s.Rhs[0]))
		}
	}
	for _, e := range s.Lhs {
		m.parts(e)
	}
	m.values(s)
	if len(s.Lhs) != len(s.Rhs) {
		m.cleared(s)
	}
}

// cleared adds, for each result of a call, a mutant in which it is zero.
func (m *mutator) cleared(s *ast.AssignStmt) {
	for _, e := range s.Lhs {
		ident, ok := e.(*ast.Ident)
		if !ok || ident.Name == "_" {
			continue
		}
		var t types.Type
		if object := m.info.Defs[ident]; object != nil {
			t = object.Type()
		} else if object := m.info.Uses[ident]; object != nil {
			t = object.Type()
		}
		if isBool(t) {
			id := m.add(e, zeroed, ident.Name+" of "+m.source(s.Rhs[0]), "!"+ident.Name)
			m.wrap(s, "", fmt.Sprintf("; %s = mutantAt(%d) != %s", ident.Name, id, ident.Name))
			continue
		}
		id := m.add(e, zeroed, ident.Name+" of "+m.source(s.Rhs[0]), "zero")
		m.wrap(s, "", fmt.Sprintf("; mutantClear(%d, &%s)", id, ident.Name))
	}
}
