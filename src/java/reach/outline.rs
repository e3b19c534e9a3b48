//! Reads a test file into its members and the names that its text mentions. Nothing is resolved.

use std::collections::HashSet;
use std::ops::Range;

use tree_sitter::{Node, Parser};

use crate::java::{MOST_BYTES, children};

/// A file's imports, types, members and mentions.
#[derive(Default)]
pub(super) struct Outline<'a> {
    pub(super) package: Option<Range<usize>>,
    pub(super) imports: Vec<Import<'a>>,
    /// Types that are members or at the top level, in the order of their beginnings.
    pub(super) types: Vec<Type<'a>>,
    pub(super) declarations: Vec<Declaration<'a>>,
    pub(super) items: Vec<Item<'a>>,
    /// Mentions in the order of the text.
    pub(super) mentions: Vec<Mention<'a>>,
    /// Every name that the file declares, including variables and parameters.
    pub(super) declared: HashSet<&'a str>,
    /// Names that are imported one by one.
    pub(super) imported: HashSet<&'a str>,
}

pub(super) struct Import<'a> {
    pub(super) range: Range<usize>,
    /// The simple name; `None` for an import on demand.
    pub(super) name: Option<&'a str>,
    pub(super) is_static: bool,
}

pub(super) struct Type<'a> {
    pub(super) name: &'a str,
    /// The directly enclosing type.
    pub(super) outer: Option<usize>,
    /// Its text from the annotations to the body.
    pub(super) header: Range<usize>,
    /// Simple names of its superclass and interfaces.
    pub(super) supertypes: Vec<&'a str>,
    pub(super) has_supertypes: bool,
}

/// The common part of one declaration's members. It is stored once, because a hostile declaration has tens of thousands
/// of annotations and as many fields.
pub(super) struct Declaration<'a> {
    pub(super) kind: ItemKind,
    /// The indexes of its members. Only fields have more than one in a declaration.
    pub(super) items: Range<usize>,
    /// Simple names of its annotations.
    pub(super) annotations: Vec<&'a str>,
    /// Further names that mention its members: those that `@DataProvider` gives.
    pub(super) provides: Vec<&'a str>,
    pub(super) is_static: bool,
    pub(super) is_private: bool,
}

/// A member of a type that is not a type itself. Each of several fields in one declaration is a member of its own.
pub(super) struct Item<'a> {
    /// The type's index.
    pub(super) owner: usize,
    /// The declaration's index.
    pub(super) declaration: usize,
    pub(super) name: Option<&'a str>,
    /// Its text. Fields in one declaration share the first part.
    pub(super) ranges: Vec<Range<usize>>,
    /// Whether it has a value that is computed when its object or class is made.
    pub(super) has_value: bool,
    pub(super) has_body: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ItemKind {
    Method,
    Constructor,
    Field,
    Initializer,
    /// An enum constant.
    Constant,
}

/// A name in the text, except where it is being declared.
pub(super) struct Mention<'a> {
    pub(super) at: usize,
    pub(super) name: &'a str,
    pub(super) by: Use,
    /// Whether it has no qualifier.
    pub(super) is_bare: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Use {
    /// Mentioned as a method.
    Call,
    /// Mentioned as a variable or type.
    Name,
    /// Mentioned in another way, such as by an annotation's string or by `::`.
    Text,
}

impl<'a> Outline<'a> {
    /// Reads a source; `None` if it is too large.
    pub(super) fn read(source: &'a [u8]) -> Option<Self> {
        if source.len() > MOST_BYTES {
            return None;
        }
        let mut parser = Parser::new();
        parser.set_language(&tree_sitter_java::LANGUAGE.into()).ok()?;
        let tree = parser.parse(source, None)?;
        let mut walk = Walk { source, outline: Self::default(), open: Vec::new(), item: None, annotation: None };
        walk.run(tree.root_node());
        Some(walk.outline)
    }

    /// Returns the declaration of a member.
    pub(super) fn declaration(&self, item: usize) -> &Declaration<'a> {
        &self.declarations[self.items[item].declaration]
    }

    /// Returns the names that mention a member.
    pub(super) fn names(&self, item: usize) -> impl Iterator<Item = &'a str> {
        self.items[item].name.iter().chain(&self.declaration(item).provides).copied()
    }

    /// Tells whether a type has this binary name, which is without the package.
    pub(super) fn is_named(&self, at: usize, binary_name: &str) -> bool {
        let (mut next, mut left) = (Some(at), binary_name);
        while let Some(declared) = next.and_then(|at| self.types.get(at)) {
            let Some(rest) = left.strip_suffix(declared.name) else { return false };
            match (declared.outer, rest.strip_suffix('$')) {
                (None, _) => return rest.is_empty(),
                (Some(_), None) => return false,
                (outer, Some(rest)) => (next, left) = (outer, rest),
            }
        }
        false
    }
}

/// Returns the body of a lambda that is a field's value. It runs only when somebody calls it. The types around it, and what a
/// method reference names, are linked when the value is made.
fn deferred(mut value: Node<'_>) -> Option<Node<'_>> {
    loop {
        value = match value.kind() {
            "lambda_expression" => return value.child_by_field_name("body"),
            "cast_expression" => value.child_by_field_name("value")?,
            "parenthesized_expression" => value.named_child(0)?,
            _ => return None,
        };
    }
}

struct Walk<'a> {
    source: &'a [u8],
    outline: Outline<'a>,
    /// Types around the present node, with their depth.
    open: Vec<(usize, usize)>,
    /// The depth of the member around the present node.
    item: Option<usize>,
    /// The depth of the annotation around the present node.
    annotation: Option<usize>,
}

impl<'a> Walk<'a> {
    fn run(&mut self, root: Node<'_>) {
        let mut cursor = root.walk();
        let mut path: Vec<Node<'_>> = Vec::new();
        loop {
            let node = cursor.node();
            let descends = self.enter(node, cursor.field_name(), &path);
            if descends && cursor.goto_first_child() {
                path.push(node);
                continue;
            }
            while !cursor.goto_next_sibling() {
                if !cursor.goto_parent() {
                    return;
                }
                path.pop();
            }
            self.annotation = self.annotation.filter(|depth| *depth < path.len());
            self.item = self.item.filter(|depth| *depth < path.len());
            while self.open.last().is_some_and(|(_, depth)| *depth >= path.len()) {
                self.open.pop();
            }
        }
    }

    /// Processes a node. Tells whether the nodes below it matter.
    fn enter(&mut self, node: Node<'_>, field: Option<&str>, path: &[Node<'_>]) -> bool {
        let parent = path.last().map_or("", |parent| parent.kind());
        if matches!(node.kind(), "annotation" | "marker_annotation") {
            self.annotation.get_or_insert(path.len());
        }
        match node.kind() {
            "package_declaration" => {
                self.outline.package = Some(node.byte_range());
                return false;
            }
            "import_declaration" => {
                self.import(node);
                return false;
            }
            "identifier" | "type_identifier" => self.name(node, field, path),
            "string_fragment" | "multiline_string_fragment" => self.string(node),
            kind if self.item.is_none() => self.member(node, kind, parent, path.len()),
            _ => {}
        }
        true
    }

    fn member(&mut self, node: Node<'_>, kind: &str, parent: &str, depth: usize) {
        let is_body = matches!(parent, "class_body" | "enum_body_declarations");
        match kind {
            "class_declaration"
            | "interface_declaration"
            | "enum_declaration"
            | "record_declaration"
            | "annotation_type_declaration" => self.open_type(node, depth),
            "method_declaration" | "annotation_type_element_declaration" => {
                self.open_item(node, ItemKind::Method, depth);
            }
            "constructor_declaration" | "compact_constructor_declaration" => {
                self.open_item(node, ItemKind::Constructor, depth);
            }
            "static_initializer" => self.open_item(node, ItemKind::Initializer, depth),
            "block" if is_body => self.open_item(node, ItemKind::Initializer, depth),
            "enum_constant" => self.open_item(node, ItemKind::Constant, depth),
            "field_declaration" | "constant_declaration" => self.open_fields(node, depth),
            _ => {}
        }
    }

    fn open_type(&mut self, node: Node<'_>, depth: usize) {
        let Some(name) = node.child_by_field_name("name").map(|name| self.text(name)) else { return };
        let end = node.child_by_field_name("body").map_or(node.end_byte(), |body| body.start_byte());
        let mut supertypes = Vec::new();
        for list in children(node) {
            if matches!(list.kind(), "superclass" | "super_interfaces" | "extends_interfaces") {
                self.supertypes(list, &mut supertypes);
            }
        }
        let outer = self.open.last().map(|(index, _)| *index);
        self.open.push((self.outline.types.len(), depth));
        let (header, has_supertypes) = (node.start_byte()..end, !supertypes.is_empty());
        self.outline.types.push(Type { name, outer, header, supertypes, has_supertypes });
    }

    /// Collects the last name of every type in a list, without type arguments.
    fn supertypes(&self, list: Node<'_>, found: &mut Vec<&'a str>) {
        let mut left: Vec<Node<'_>> = children(list).collect();
        while let Some(node) = left.pop() {
            match node.kind() {
                "type_identifier" => found.push(self.text(node)),
                "scoped_type_identifier" => {
                    let last = children(node).filter(|child| child.kind() == "type_identifier").last();
                    found.extend(last.map(|name| self.text(name)));
                }
                "type_list" | "generic_type" | "annotated_type" => left.extend(children(node)),
                _ => {}
            }
        }
    }

    fn open_item(&mut self, node: Node<'_>, kind: ItemKind, depth: usize) {
        let name = node.child_by_field_name("name").map(|name| self.text(name));
        let has_body = node.child_by_field_name("body").is_some();
        self.declare(node, kind, depth);
        self.push(name, vec![node.byte_range()], (false, has_body));
    }

    fn open_fields(&mut self, node: Node<'_>, depth: usize) {
        let declarators: Vec<Node<'_>> = children(node).filter(|child| child.kind() == "variable_declarator").collect();
        let Some(first) = declarators.first() else { return };
        let shared = node.start_byte()..first.start_byte();
        self.declare(node, ItemKind::Field, depth);
        for declarator in declarators {
            let name = declarator.child_by_field_name("name").map(|name| self.text(name));
            let value = declarator.child_by_field_name("value");
            let body = value.and_then(deferred);
            let end = body.map_or(declarator.end_byte(), |body| body.start_byte());
            let ranges = vec![shared.clone(), declarator.start_byte()..end];
            self.push(name, ranges, (value.is_some(), false));
            // A member of the same name, which is reached only where the name is mentioned.
            if let Some(body) = body {
                self.push(name, vec![body.byte_range()], (false, false));
            }
        }
    }

    /// Begins a declaration, whose members follow.
    fn declare(&mut self, node: Node<'_>, kind: ItemKind, depth: usize) {
        let begin = self.outline.items.len();
        let mut declaration = Declaration {
            kind,
            items: begin..begin,
            annotations: Vec::new(),
            provides: Vec::new(),
            is_static: false,
            is_private: false,
        };
        for modifier in children(node).filter(|child| child.kind() == "modifiers").flat_map(children) {
            match modifier.kind() {
                "static" => declaration.is_static = true,
                "private" => declaration.is_private = true,
                "annotation" | "marker_annotation" => {
                    let name = modifier.child_by_field_name("name").map_or("", |name| self.text(name));
                    let name = name.rsplit('.').next().unwrap_or(name).trim();
                    if name == "DataProvider" {
                        declaration.provides.extend(self.strings(modifier));
                    }
                    declaration.annotations.push(name);
                }
                _ => {}
            }
        }
        self.outline.declarations.push(declaration);
        self.item = Some(depth);
    }

    /// Adds a member of the latest declaration.
    fn push(&mut self, name: Option<&'a str>, ranges: Vec<Range<usize>>, (has_value, has_body): (bool, bool)) {
        let Some(declaration) = self.outline.declarations.len().checked_sub(1) else { return };
        // A member outside of every type has no owner.
        let owner = self.open.last().map_or(usize::MAX, |(index, _)| *index);
        self.outline.items.push(Item { owner, declaration, name, ranges, has_value, has_body });
        self.outline.declarations[declaration].items.end = self.outline.items.len();
    }

    /// Returns the strings directly in an annotation.
    fn strings(&self, annotation: Node<'_>) -> Vec<&'a str> {
        let mut left: Vec<Node<'_>> = children(annotation).collect();
        let mut found = Vec::new();
        while let Some(node) = left.pop() {
            match node.kind() {
                "string_fragment" => found.push(self.text(node)),
                "annotation_argument_list"
                | "element_value_pair"
                | "element_value_array_initializer"
                | "string_literal" => left.extend(children(node)),
                _ => {}
            }
        }
        found
    }

    fn name(&mut self, node: Node<'_>, field: Option<&str>, path: &[Node<'_>]) {
        let (name, at) = (self.text(node), node.start_byte());
        let parent = path.last().map_or("", |parent| parent.kind());
        let is_declared = match (parent, field) {
            ("method_invocation" | "annotation" | "marker_annotation" | "scoped_identifier", Some("name")) => false,
            (_, Some("name")) | ("lambda_expression", Some("parameters")) => true,
            ("inferred_parameters" | "type_pattern" | "record_pattern_component", _) => node.kind() == "identifier",
            ("type_parameter", _) => true,
            _ => false,
        };
        if is_declared {
            self.outline.declared.insert(name);
            return;
        }
        let by = match (parent, field) {
            (_, Some("key")) => return,
            ("method_invocation", Some("name")) => Use::Call,
            ("method_reference", _) => Use::Text,
            _ => Use::Name,
        };
        let before = self.source[..at].iter().rev().find(|byte| !byte.is_ascii_whitespace());
        self.outline.mentions.push(Mention { at, name, by, is_bare: before != Some(&b'.') });
    }

    /// Processes the names of members in an annotation's string: `factory`, `p.A#factory`, `one, other`.
    fn string(&mut self, node: Node<'_>) {
        if self.annotation.is_none() {
            return;
        }
        let text = self.text(node);
        let is_name = |text: &str| {
            let mut chars = text.chars();
            chars.next().is_some_and(|c| c.is_alphabetic() || c == '_' || c == '$')
                && chars.all(|c| c.is_alphanumeric() || c == '_' || c == '$')
        };
        let names = text.split(',').map(|part| part.rsplit('#').next().unwrap_or(part).trim());
        let names: Vec<&'a str> = names.map(|name| name.strip_suffix("()").unwrap_or(name)).collect();
        if names.iter().all(|name| is_name(name)) {
            let at = node.start_byte();
            let mentions = names.into_iter().map(|name| Mention { at, name, by: Use::Text, is_bare: false });
            self.outline.mentions.extend(mentions);
        }
    }

    fn import(&mut self, node: Node<'_>) {
        let is_static = children(node).any(|child| child.kind() == "static");
        let on_demand = children(node).any(|child| child.kind() == "asterisk");
        let path = children(node).find(|child| matches!(child.kind(), "identifier" | "scoped_identifier"));
        let path = path.map_or("", |path| self.text(path));
        let last = path.rsplit('.').next().unwrap_or(path).trim();
        let name = (!on_demand).then_some(last);
        self.outline.imported.extend(name);
        self.outline.imports.push(Import { range: node.byte_range(), name, is_static });
    }

    fn text(&self, node: Node<'_>) -> &'a str {
        let bytes = self.source.get(node.byte_range()).unwrap_or_default();
        std::str::from_utf8(bytes).unwrap_or_default()
    }
}
