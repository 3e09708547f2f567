package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
)

// condition mutates an expression that decides what is done.
func (m *mutator) condition(e ast.Expr) {
	if m.isConstant(e) {
		m.constant(e)
		return
	}
	id := m.add(e, condition, m.source(e), "true")
	m.add(e, condition, m.source(e), "false")
	m.wrap(e, fmt.Sprintf("mutantForced(%d, ", id), ")")
	m.operation(e)
}

// value mutates an expression whose value is used as a whole: the result of a function, a value of a
// variable or of a field.
func (m *mutator) value(e ast.Expr) {
	t := m.typeOf(e)
	_, isFunction := e.(*ast.FuncLit)
	switch {
	case t == nil || isNil(t) || isFunction || isEmpty(e):
		m.operation(e)
	case m.isConstant(e):
		m.constant(e)
	case isBool(t):
		m.condition(e)
	default:
		m.zero(e)
		m.operation(e)
	}
}

func isNil(t types.Type) bool {
	b, ok := t.(*types.Basic)
	return ok && b.Kind() == types.UntypedNil
}

// isEmpty reports whether an expression is a literal without elements.
func isEmpty(e ast.Expr) bool {
	literal, ok := e.(*ast.CompositeLit)
	return ok && len(literal.Elts) == 0
}

func (m *mutator) zero(e ast.Expr) {
	id := m.add(e, zeroed, m.source(e), "zero")
	m.wrap(e, fmt.Sprintf("mutantZero(%d, ", id), ")")
}

// operand mutates an expression that is a part of another one.
func (m *mutator) operand(e ast.Expr) {
	t := m.typeOf(e)
	switch {
	case t == nil || isNil(t):
		m.parts(e)
	case m.isConstant(e):
		m.constant(e)
	default:
		if call, ok := e.(*ast.CallExpr); ok && !m.isConversion(call) {
			if isBool(t) {
				m.condition(e)
				return
			}
			m.zero(e)
		}
		m.operation(e)
	}
}

func (m *mutator) isConversion(call *ast.CallExpr) bool { return m.info.Types[call.Fun].IsType() }

// operation mutates the operator of an expression, or the variable that it names, and its parts.
func (m *mutator) operation(e ast.Expr) {
	switch e := e.(type) {
	case *ast.BinaryExpr:
		m.binary(e)
	case *ast.UnaryExpr:
		switch {
		case e.Op == token.NOT:
			id := m.add(e, logical, m.source(e), m.source(e.X))
			m.wrap(e, fmt.Sprintf("(mutantAt(%d) != (", id), "))")
			m.operand(e.X)
		case e.Op == token.SUB && !m.isConstant(e):
			id := m.add(e, arithmetic, m.source(e), m.source(e.X))
			m.wrap(e, fmt.Sprintf("mutantOther(%d, ", id), ", "+m.source(e.X)+")")
			m.operand(e.X)
		default:
			m.parts(e)
		}
	case *ast.ParenExpr:
		m.operation(e.X)
	case *ast.Ident:
		m.use(e)
	case *ast.SelectorExpr:
		m.fieldOf(e)
		m.parts(e)
	default:
		m.parts(e)
	}
}

// opposite operators; the others have no mutant.
var opposite = map[token.Token]token.Token{
	token.ADD: token.SUB, token.SUB: token.ADD, token.MUL: token.QUO, token.QUO: token.MUL,
	token.LAND: token.LOR, token.LOR: token.LAND, token.EQL: token.NEQ, token.NEQ: token.EQL,
}

// relations are the two mutants of an operator, as the switches know them.
var relations = map[token.Token][2]token.Token{
	token.LSS: {token.LEQ, token.GTR}, token.LEQ: {token.LSS, token.GTR},
	token.GTR: {token.GEQ, token.LSS}, token.GEQ: {token.GTR, token.LSS},
}

func (m *mutator) binary(e *ast.BinaryExpr) {
	with := func(op token.Token) string {
		return m.source(e.X) + " " + op.String() + " " + m.source(e.Y)
	}
	call := func(k kind, name, argument string) {
		id := m.add(e, k, m.source(e), with(opposite[e.Op]))
		m.wrap(e, fmt.Sprintf("%s(%d, %s", name, id, argument), ")")
		m.edits.replace(m.offset(e.OpPos), len(e.Op.String()), ",")
	}
	switch e.Op {
	case token.LSS, token.LEQ, token.GTR, token.GEQ:
		id := m.add(e, relational, m.source(e), with(relations[e.Op][0]))
		m.add(e, relational, m.source(e), with(relations[e.Op][1]))
		m.wrap(e, fmt.Sprintf("mutantRelation(%d, %q, ", id, e.Op), ")")
		m.edits.replace(m.offset(e.OpPos), len(e.Op.String()), ",")
	case token.EQL, token.NEQ:
		id := m.add(e, relational, m.source(e), with(opposite[e.Op]))
		m.wrap(e, fmt.Sprintf("(mutantAt(%d) != (", id), "))")
	case token.LAND, token.LOR:
		name := map[token.Token]string{token.LAND: "mutantAnd", token.LOR: "mutantOr"}[e.Op]
		call(logical, name, "")
		m.wrap(e.Y, "func() bool { return ", " }")
		m.condition(e.X)
		m.condition(e.Y)
		return
	case token.ADD, token.SUB, token.MUL, token.QUO:
		if isNumber(m.typeOf(e)) {
			call(arithmetic, "mutantArithmetic", fmt.Sprintf("'%s', ", e.Op))
		}
	}
	m.operand(e.X)
	m.operand(e.Y)
}

// parts mutates the parts of an expression, but not the expression itself: it may name a place.
func (m *mutator) parts(e ast.Expr) {
	switch e := e.(type) {
	case *ast.CallExpr:
		m.call(e)
	case *ast.FuncLit:
		m.body(e.Type, e.Body)
	case *ast.CompositeLit:
		m.elements(e)
	case *ast.ParenExpr:
		m.parts(e.X)
	case *ast.SelectorExpr:
		m.base(e.X)
	case *ast.IndexExpr:
		if m.typeOf(e.Index) != nil {
			m.base(e.X)
			m.operand(e.Index)
		}
	case *ast.SliceExpr:
		m.base(e.X)
		for _, bound := range []ast.Expr{e.Low, e.High, e.Max} {
			if bound != nil {
				m.operand(bound)
			}
		}
	case *ast.StarExpr:
		m.base(e.X)
	case *ast.UnaryExpr:
		m.parts(e.X)
	case *ast.BinaryExpr:
		m.operand(e.X)
		m.operand(e.Y)
	case *ast.TypeAssertExpr:
		m.base(e.X)
	}
}

// base mutates an expression of which a field, an element or a method is used. Only a reference can
// be the result of a switch: a place can't.
func (m *mutator) base(e ast.Expr) {
	t := m.typeOf(e)
	if ident, ok := e.(*ast.Ident); ok && t != nil {
		switch t.Underlying().(type) {
		case *types.Pointer, *types.Interface, *types.Map, *types.Slice:
			m.use(ident)
		}
		return
	}
	m.parts(e)
}

func (m *mutator) call(e *ast.CallExpr) {
	builtin := ""
	if ident, ok := e.Fun.(*ast.Ident); ok {
		if _, isBuiltin := m.info.Uses[ident].(*types.Builtin); isBuiltin {
			builtin = ident.Name
		}
	}
	switch fun := e.Fun.(type) {
	case *ast.SelectorExpr:
		m.base(fun.X)
	case *ast.FuncLit:
		m.parts(fun)
	}
	for i, argument := range e.Args {
		if i == 0 && (builtin == "make" || builtin == "new") {
			continue
		}
		m.operand(argument)
	}
}

func (m *mutator) elements(e *ast.CompositeLit) {
	for _, element := range e.Elts {
		pair, ok := element.(*ast.KeyValueExpr)
		if !ok {
			m.element(element)
			continue
		}
		if _, isField := m.structField(pair.Key); !isField {
			m.operand(pair.Key)
		}
		m.element(pair.Value)
	}
}

func (m *mutator) element(e ast.Expr) {
	// The type of an inner literal may be left out: then it is not an expression on its own.
	if literal, ok := e.(*ast.CompositeLit); ok && literal.Type == nil {
		m.elements(literal)
		return
	}
	m.value(e)
}

func (m *mutator) structField(key ast.Expr) (*types.Var, bool) {
	ident, ok := key.(*ast.Ident)
	if !ok {
		return nil, false
	}
	found, ok := m.info.Uses[ident].(*types.Var)
	return found, ok && found.IsField()
}
