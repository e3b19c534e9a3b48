//! Parses Java sources: the types and methods that a file declares, and their lines. Nothing is resolved or compiled.
//!
//! The parser is error-tolerant; [`Unit::has_errors`] tells whether it met errors. Trees are walked without recursion,
//! so that no nesting in an untrusted file can exhaust the stack.

use std::collections::HashMap;

use tree_sitter::{Node, Parser};

pub mod reach;

/// The longest source that is parsed, in bytes.
const MOST_BYTES: usize = 16 << 20;
/// The longest name of a type, in bytes: no file system that the compiler writes to has longer names of files. Without a limit,
/// types in each other would have names that together are as long as the square of their number.
const MOST_NAME: usize = 255;

/// One source file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unit {
    /// Every type with a body, named and anonymous, in the order of their beginnings.
    pub types: Vec<TypeDeclaration>,
    /// Whether the parser did not understand a part of the source, or a type's name is too long for a file.
    pub has_errors: bool,
}

/// A class, interface, enum, record, annotation type or anonymous class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypeDeclaration {
    /// Binary name without the package: `Outer$Inner`, `Outer$1`, `Outer$1Local`. Empty where it is too long for a file.
    pub name: String,
    /// Whether members may be inherited from another file's type.
    pub inherits: bool,
    /// First and last line, counted from 1, annotations included.
    pub lines: (usize, usize),
    /// Methods and constructors that its own body declares, in order.
    pub methods: Vec<MethodDeclaration>,
}

/// A method or constructor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MethodDeclaration {
    /// Its name; `<init>` for a constructor.
    pub name: String,
    /// Types of its parameters as written, without blanks, annotations and type arguments.
    pub parameters: Vec<String>,
    /// First and last line, counted from 1, annotations and modifiers included.
    pub lines: (usize, usize),
}

impl Unit {
    /// Parses a source. A source that is too large or not UTF-8 has errors.
    pub fn parse(source: &[u8]) -> Self {
        let broken = Self { types: Vec::new(), has_errors: true };
        if source.len() > MOST_BYTES {
            return broken;
        }
        let mut parser = Parser::new();
        if parser.set_language(&tree_sitter_java::LANGUAGE.into()).is_err() {
            return broken;
        }
        let Some(tree) = parser.parse(source, None) else { return broken };
        let mut unit = Self { types: Vec::new(), has_errors: tree.root_node().has_error() };
        Walk { source, unit: &mut unit, open: Vec::new(), blocks: Vec::new(), anonymous: HashMap::new() }
            .run(tree.root_node());
        unit
    }

    /// Returns the type of a binary name without the package.
    pub fn type_named(&self, name: &str) -> Option<&TypeDeclaration> {
        self.types.iter().find(|declared| declared.name == name)
    }

    /// Returns the methods of a type by name: overloads, in order. Constructors have the name `<init>` or that of the
    /// class.
    pub fn methods<'a>(&'a self, class: &str, method: &'a str) -> impl Iterator<Item = &'a MethodDeclaration> {
        let simple = class.rsplit('$').next().unwrap_or(class).to_owned();
        self.type_named(class)
            .into_iter()
            .flat_map(|declared| &declared.methods)
            .filter(move |declared| declared.name == method || (declared.name == CONSTRUCTOR && method == simple))
    }
}

/// Returns a source's declarations: its text without comments and without the bodies of methods, constructors and
/// initializers. Texts with equal declarations have the same effect on other sources. `None` if the source can't be
/// parsed.
pub fn declarations(source: &[u8]) -> Option<String> {
    if source.len() > MOST_BYTES {
        return None;
    }
    let mut parser = Parser::new();
    parser.set_language(&tree_sitter_java::LANGUAGE.into()).ok()?;
    let tree = parser.parse(source, None)?;
    if tree.root_node().has_error() {
        return None;
    }
    let mut tokens = String::new();
    let mut cursor = tree.walk();
    loop {
        let node = cursor.node();
        let is_left_out = matches!(node.kind(), "block" | "constructor_body" | "line_comment" | "block_comment");
        if !is_left_out {
            // A string's content is between the tokens at its ends.
            if node.child_count() == 0 || node.kind() == "string_literal" {
                tokens.push_str(&String::from_utf8_lossy(&source[node.byte_range()]));
                tokens.push(' ');
            }
            if node.kind() != "string_literal" && cursor.goto_first_child() {
                continue;
            }
        }
        while !cursor.goto_next_sibling() {
            if !cursor.goto_parent() {
                return Some(tokens);
            }
        }
    }
}

/// The name that constructors have in class files.
const CONSTRUCTOR: &str = "<init>";

struct Walk<'a> {
    source: &'a [u8],
    unit: &'a mut Unit,
    /// Types around the present node: index in the unit, and depth in the tree.
    open: Vec<(usize, usize)>,
    /// Whether each node around the present one is a block. The parser would find a parent by starting at the root each time.
    blocks: Vec<bool>,
    /// Number of anonymous classes in each class so far.
    anonymous: HashMap<String, usize>,
}

impl Walk<'_> {
    fn run(mut self, root: Node<'_>) {
        let mut cursor = root.walk();
        let mut depth = 0;
        loop {
            let node = cursor.node();
            self.enter(node, depth);
            if cursor.goto_first_child() {
                self.blocks.push(node.kind() == "block");
                depth += 1;
                continue;
            }
            loop {
                if cursor.goto_next_sibling() {
                    break;
                }
                if !cursor.goto_parent() {
                    return;
                }
                self.blocks.pop();
                depth -= 1;
            }
            while self.open.last().is_some_and(|(_, opened)| *opened >= depth) {
                self.open.pop();
            }
        }
    }

    fn enter(&mut self, node: Node<'_>, depth: usize) {
        match node.kind() {
            "class_declaration"
            | "interface_declaration"
            | "enum_declaration"
            | "record_declaration"
            | "annotation_type_declaration" => {
                let Some(name) = node.child_by_field_name("name").map(|name| self.text(name)) else { return };
                let local = self.blocks.last() == Some(&true);
                let name = match self.enclosing() {
                    None => name,
                    Some(outer) if local => below(outer, &format!("1{name}")),
                    Some(outer) => below(outer, &name),
                };
                let inherits =
                    ["superclass", "interfaces"].iter().any(|field| node.child_by_field_name(field).is_some())
                        || children(node).any(|child| child.kind() == "extends_interfaces");
                self.open(node, name, inherits, depth);
            }
            "object_creation_expression" | "enum_constant" => {
                let body = children(node).find(|child| child.kind() == "class_body");
                let Some(outer) = self.enclosing().filter(|_| body.is_some()).map(str::to_owned) else { return };
                // The compiler counts anonymous classes for each directly enclosing class.
                let number = self.anonymous.entry(outer.clone()).or_default();
                *number += 1;
                let name = below(&outer, &number.to_string());
                self.open(node, name, true, depth);
            }
            "method_declaration" => {
                let name = node.child_by_field_name("name").map(|name| self.text(name));
                self.method(node, name);
            }
            "constructor_declaration" | "compact_constructor_declaration" => {
                self.method(node, Some(CONSTRUCTOR.to_owned()));
            }
            _ => {}
        }
    }

    fn enclosing(&self) -> Option<&str> {
        self.open.last().map(|(index, _)| self.unit.types[*index].name.as_str())
    }

    fn open(&mut self, node: Node<'_>, mut name: String, inherits: bool, depth: usize) {
        if name.len() > MOST_NAME {
            name.clear();
        }
        self.unit.has_errors |= name.is_empty();
        self.open.push((self.unit.types.len(), depth));
        self.unit.types.push(TypeDeclaration { name, inherits, lines: lines(node), methods: Vec::new() });
    }

    fn method(&mut self, node: Node<'_>, name: Option<String>) {
        let (Some(name), Some((index, _))) = (name, self.open.last()) else { return };
        let parameters = node.child_by_field_name("parameters").map(|list| self.parameters(list)).unwrap_or_default();
        self.unit.types[*index].methods.push(MethodDeclaration { name, parameters, lines: lines(node) });
    }

    fn parameters(&self, list: Node<'_>) -> Vec<String> {
        let mut parameters = Vec::new();
        for parameter in children(list) {
            let text = match parameter.kind() {
                "formal_parameter" => {
                    let dimensions = parameter.child_by_field_name("dimensions").map(|node| self.text(node));
                    parameter
                        .child_by_field_name("type")
                        .map(|node| self.erased(node) + &dimensions.unwrap_or_default())
                }
                "spread_parameter" => children(parameter)
                    .find(|child| !matches!(child.kind(), "modifiers" | "..." | "variable_declarator"))
                    .map(|node| self.erased(node) + "[]"),
                _ => None,
            };
            parameters.extend(text);
        }
        parameters
    }

    /// Returns a type's text without blanks and type arguments, by its last name, because imports are not resolved.
    fn erased(&self, node: Node<'_>) -> String {
        let mut depth = 0usize;
        let mut text = String::new();
        for c in self.text(node).chars() {
            match c {
                '<' => depth += 1,
                '>' => depth = depth.saturating_sub(1),
                _ if depth > 0 || c.is_whitespace() => {}
                '.' => text.clear(),
                _ => text.push(c),
            }
        }
        text
    }

    fn text(&self, node: Node<'_>) -> String {
        String::from_utf8_lossy(self.source.get(node.byte_range()).unwrap_or_default()).into_owned()
    }
}

/// Returns the name of a type inside another, which is empty where the outer type's name is.
fn below(outer: &str, name: &str) -> String {
    if outer.is_empty() { String::new() } else { format!("{outer}${name}") }
}

/// Returns a node's children. Unlike a walk from sibling to sibling, this does not get slower with the node's depth.
fn children<'tree>(node: Node<'tree>) -> impl Iterator<Item = Node<'tree>> {
    let mut cursor = node.walk();
    node.children(&mut cursor).collect::<Vec<_>>().into_iter()
}

fn lines(node: Node<'_>) -> (usize, usize) {
    (node.start_position().row + 1, node.end_position().row + 1)
}

#[cfg(test)]
mod tests;
