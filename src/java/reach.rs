//! Tells which parts of a test file one of its test methods needs: the method, the members of the file that it mentions, and
//! those that run with each of its tests.
//!
//! `execution` uses this to decide which compile errors of a test file are a method's own. Names are compared as
//! written and never resolved. Two members with one name count as mentioned together, so the answer may include too
//! much text. Members that only reflection or another file's code calls are missed, unless they belong to the test's
//! life cycle.
//!
//! A submission wrote the file, and the program reads it outside of any container. So time and memory must grow with
//! the file's length alone, and never with a product, such as supertypes times types of that name.

mod outline;
mod platform;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::ops::Range;

use outline::{Declaration, Import, ItemKind, Mention, Outline, Use};
use platform::is_of_java_lang;

/// Where a compiler found an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Line, counted from 1.
    pub line: usize,
    /// Column, counted from 1; `None` where the compiler gave none.
    pub column: Option<usize>,
}

/// A place in the text.
pub struct Found {
    line: Range<usize>,
    /// Offsets by two readings of the column: in javac a tab reaches the next multiple of eight, in other tools it is
    /// one character.
    offsets: Option<[usize; 2]>,
}

/// A test file, parsed once for all of its methods.
pub struct TestSource<'a> {
    bytes: &'a [u8],
    /// Offset of each line's first byte.
    lines: Vec<usize>,
    outline: Outline<'a>,
    items_by_name: HashMap<&'a str, Vec<usize>>,
    /// Declarations by the further names of their members.
    declarations_by_name: HashMap<&'a str, Vec<usize>>,
    types_by_name: HashMap<&'a str, Vec<usize>>,
    items_by_type: HashMap<usize, Vec<usize>>,
}

/// What one test method reaches in its file.
#[derive(Debug)]
pub struct Reach {
    reached: BTreeSet<(usize, usize)>,
    others: BTreeSet<(usize, usize)>,
    /// On-demand imports whose names the reached text may use.
    on_demand: BTreeSet<(usize, usize)>,
}

impl<'a> TestSource<'a> {
    /// Parses a source; `None` if it is too large.
    pub fn parse(bytes: &'a [u8]) -> Option<Self> {
        let outline = Outline::read(bytes)?;
        let mut items_by_name: HashMap<&str, Vec<usize>> = HashMap::new();
        let mut items_by_type: HashMap<usize, Vec<usize>> = HashMap::new();
        for (index, item) in outline.items.iter().enumerate() {
            if let Some(name) = item.name {
                items_by_name.entry(name).or_default().push(index);
            }
            items_by_type.entry(item.owner).or_default().push(index);
        }
        let mut declarations_by_name: HashMap<&str, Vec<usize>> = HashMap::new();
        for (index, declaration) in outline.declarations.iter().enumerate() {
            for name in &declaration.provides {
                declarations_by_name.entry(*name).or_default().push(index);
            }
        }
        let mut types_by_name: HashMap<&str, Vec<usize>> = HashMap::new();
        for (index, declared) in outline.types.iter().enumerate() {
            types_by_name.entry(declared.name).or_default().push(index);
        }
        let lines = line_starts(bytes);
        Some(Self { bytes, lines, outline, items_by_name, declarations_by_name, types_by_name, items_by_type })
    }

    /// Returns what a method reaches. `class` is the binary name of its class without the package. A file that does not
    /// declare the class reaches nothing.
    pub fn reach(&self, class: &str, method: &str) -> Reach {
        let mut search = Search::new(self);
        search.begin(class, method);
        search.run();
        search.end()
    }

    /// Finds places in the text. Places outside of the text are left out.
    pub fn find(&self, places: &[Place]) -> Vec<Found> {
        places.iter().filter_map(|place| self.find_one(*place)).collect()
    }

    fn find_one(&self, place: Place) -> Option<Found> {
        let line = self.line(place.line)?;
        let offsets = |column| [8, 1].map(|tab| line.start + offset_in_line(&self.bytes[line.clone()], column, tab));
        let offsets = place.column.filter(|column| *column > 0).map(offsets);
        Some(Found { line, offsets })
    }

    /// Returns a line's bytes, counted from 1.
    fn line(&self, number: usize) -> Option<Range<usize>> {
        let start = *self.lines.get(number.checked_sub(1)?)?;
        Some(start..self.lines.get(number).copied().unwrap_or(self.bytes.len()))
    }
}

impl Reach {
    /// Tells whether one of a compiler's errors of this file lies in the reached text.
    ///
    /// javac 8 reports no uses of a name whose import failed, so with `hides_uses` the failed import itself counts.
    /// Later versions report the uses as well. An on-demand import that the method does not need is then not its error.
    pub fn has_any(&self, places: &[Found], hides_uses: bool) -> bool {
        places.iter().any(|place| self.has(place, hides_uses))
    }

    fn has(&self, Found { line, offsets }: &Found, hides_uses: bool) -> bool {
        match offsets.map(|offsets| offsets.map(|at| self.covers(at, hides_uses))) {
            Some([one, other]) if one == other => one,
            // Without an exact place the line decides only if all of its text agrees.
            _ => {
                let meets = |set: &BTreeSet<(usize, usize)>| {
                    let before = set.range(..(line.end, 0)).next_back();
                    before.is_some_and(|(_, end)| *end > line.start)
                };
                let reached = meets(&self.reached) || (hides_uses && meets(&self.on_demand));
                reached && !meets(&self.others)
            }
        }
    }

    fn covers(&self, at: usize, hides_uses: bool) -> bool {
        let within = |set: &BTreeSet<(usize, usize)>| {
            set.range(..=(at, usize::MAX)).next_back().is_some_and(|(_, end)| at < *end)
        };
        within(&self.reached) || (hides_uses && within(&self.on_demand))
    }
}

struct Search<'s> {
    source: &'s TestSource<'s>,
    items: HashSet<usize>,
    /// Declarations that were reached with all of their members.
    declarations: HashSet<usize>,
    types: HashSet<usize>,
    headers: HashSet<usize>,
    /// The method's class, its superclasses and its enclosing classes, as far as the file declares them.
    chain: HashSet<usize>,
    names: HashSet<(&'s str, Use)>,
    /// Reached text that is not read yet.
    left: Vec<Range<usize>>,
    /// The mentions that were read: ends of disjoint ranges of their indexes, by the beginnings.
    read: BTreeMap<usize, usize>,
    reached: BTreeSet<(usize, usize)>,
    mentioned: HashSet<&'s str>,
    /// Whether a mentioned type, or member without a qualifier, is neither declared nor imported by name.
    unknown_type: bool,
    unknown_member: bool,
}

impl<'s> Search<'s> {
    fn new(source: &'s TestSource<'s>) -> Self {
        Self {
            source,
            items: HashSet::new(),
            declarations: HashSet::new(),
            types: HashSet::new(),
            headers: HashSet::new(),
            chain: HashSet::new(),
            names: HashSet::new(),
            left: Vec::new(),
            read: BTreeMap::new(),
            reached: BTreeSet::new(),
            mentioned: HashSet::new(),
            unknown_type: false,
            unknown_member: false,
        }
    }

    /// Reaches the method, and all members that run with each test of its class.
    fn begin(&mut self, class: &str, method: &str) {
        let outline = &self.source.outline;
        let own: Vec<usize> = (0..outline.types.len()).filter(|at| outline.is_named(*at, class)).collect();
        let (mut left, mut names) = (own.clone(), HashSet::new());
        while let Some(at) = left.pop() {
            if !self.chain.insert(at) {
                continue;
            }
            left.extend(outline.types[at].outer);
            for name in &outline.types[at].supertypes {
                if names.insert(*name) {
                    left.extend(self.source.types_by_name.get(name).into_iter().flatten());
                }
            }
        }
        if own.is_empty() {
            return;
        }
        self.reached.extend(outline.package.iter().map(|range| (range.start, range.end)));
        let mut chain: Vec<usize> = self.chain.iter().copied().collect();
        chain.sort_unstable();
        for at in chain.iter().copied() {
            self.header(at);
            for index in self.source.members(at) {
                if outline.runs_always(index, outline.types[at].has_supertypes) {
                    self.item(index);
                }
            }
        }
        // JUnitParams looks for a method by this name.
        let mut rest = method.chars();
        let first = rest.next().map(|first| first.to_uppercase().to_string()).unwrap_or_default();
        let provider = format!("parametersFor{first}{}", rest.as_str());
        let is_named = |index: &usize, name: &str| {
            outline.declaration(*index).kind == ItemKind::Method && outline.names(*index).any(|one| one == name)
        };
        let declared_in = |types: &[usize], name: &str| -> Vec<usize> {
            types.iter().flat_map(|at| self.source.members(*at)).filter(|index| is_named(index, name)).collect()
        };
        let mut methods = declared_in(&own, method);
        if methods.is_empty() {
            methods = declared_in(&chain, method);
        }
        methods.extend(declared_in(&chain, &provider));
        methods.into_iter().for_each(|index| self.item(index));
    }

    fn run(&mut self) {
        let mentions = &self.source.outline.mentions;
        while let Some(text) = self.left.pop() {
            let first = mentions.partition_point(|mention| mention.at < text.start);
            let end = mentions.partition_point(|mention| mention.at < text.end);
            // Texts lie in each other where a header's annotation has types in its values.
            for part in unread(&mut self.read, first..end) {
                mentions[part].iter().for_each(|mention| self.mention(mention));
            }
        }
    }

    fn end(self) -> Reach {
        let outline = &self.source.outline;
        let (mut reached, mut on_demand) = (self.reached, BTreeSet::new());
        let mut all: BTreeSet<(usize, usize)> = BTreeSet::new();
        let begun = !self.chain.is_empty();
        for Import { range, name, is_static } in &outline.imports {
            let range = (range.start, range.end);
            all.insert(range);
            match name {
                Some(name) if self.mentioned.contains(name) => {
                    reached.insert(range);
                }
                None if begun && (self.unknown_type || (*is_static && self.unknown_member)) => {
                    on_demand.insert(range);
                }
                _ => {}
            }
        }
        all.extend(outline.items.iter().flat_map(|item| &item.ranges).map(|range| (range.start, range.end)));
        all.extend(outline.types.iter().map(|declared| (declared.header.start, declared.header.end)));
        let others = all.into_iter().filter(|range| !reached.contains(range) && !on_demand.contains(range)).collect();
        Reach { reached, others, on_demand }
    }

    fn mention(&mut self, mention: &Mention<'s>) {
        self.mentioned.insert(mention.name);
        let outline = &self.source.outline;
        if mention.is_bare && !outline.declared.contains(mention.name) && !outline.imported.contains(mention.name) {
            let is_type = mention.name.starts_with(char::is_uppercase) && mention.name.contains(char::is_lowercase);
            match mention.by {
                Use::Name if is_type => self.unknown_type |= !is_of_java_lang(mention.name),
                Use::Call | Use::Name => self.unknown_member = true,
                Use::Text => {}
            }
        }
        if !self.names.insert((mention.name, mention.by)) {
            return;
        }
        self.named(mention.name, mention.by);
        // Lombok makes accessors of a field.
        for prefix in ["get", "set", "is", "has", "with"] {
            let Some(rest) = mention.name.strip_prefix(prefix).filter(|_| mention.by != Use::Name) else { continue };
            if let Some(first) = rest.chars().next().filter(|first| first.is_uppercase()) {
                let field = format!("{}{}", first.to_lowercase(), &rest[first.len_utf8()..]);
                self.members_named(&field, |kind| kind == ItemKind::Field);
            }
        }
    }

    /// Reaches the members that a name may stand for.
    fn named(&mut self, name: &str, by: Use) {
        self.members_named(name, |kind| match kind {
            ItemKind::Method => by != Use::Name,
            // Also by a call, which may be one of a builder or a fluent accessor.
            ItemKind::Field => true,
            ItemKind::Constant => by != Use::Call,
            ItemKind::Constructor | ItemKind::Initializer => false,
        });
        let source = self.source;
        if by != Use::Call {
            for at in source.types_by_name.get(name).into_iter().flatten() {
                self.whole_type(*at);
            }
        }
    }

    /// Reaches the members that a name mentions and whose kinds it may stand for.
    fn members_named(&mut self, name: &str, stands: impl Fn(ItemKind) -> bool) {
        let source = self.source;
        for index in source.items_by_name.get(name).into_iter().flatten() {
            if stands(source.outline.declaration(*index).kind) {
                self.item(*index);
            }
        }
        for at in source.declarations_by_name.get(name).into_iter().flatten() {
            let declaration = &source.outline.declarations[*at];
            if stands(declaration.kind) && self.declarations.insert(*at) {
                declaration.items.clone().for_each(|index| self.item(index));
            }
        }
    }

    /// Reaches a mentioned type: its members for loading and creation, and those that others call through its
    /// supertypes.
    fn whole_type(&mut self, at: usize) {
        if !self.types.insert(at) {
            return;
        }
        self.header(at);
        if self.chain.contains(&at) {
            return;
        }
        let outline = &self.source.outline;
        let has_supertypes = outline.types[at].has_supertypes;
        for index in self.source.members(at) {
            if outline.runs_when_made(index) || outline.may_be_called_unseen(index, has_supertypes) {
                self.item(index);
            }
        }
    }

    fn item(&mut self, index: usize) {
        if !self.items.insert(index) {
            return;
        }
        let item = &self.source.outline.items[index];
        for range in &item.ranges {
            if self.reached.insert((range.start, range.end)) {
                self.left.push(range.clone());
            }
        }
        self.header(item.owner);
    }

    /// Reaches the header of a type and of the types around it, because members do not compile without these.
    fn header(&mut self, at: usize) {
        let mut next = Some(at);
        while let Some(at) = next.filter(|at| self.headers.insert(*at)) {
            let Some(declared) = self.source.outline.types.get(at) else { return };
            self.reached.insert((declared.header.start, declared.header.end));
            self.left.push(declared.header.clone());
            next = declared.outer;
        }
    }
}

impl TestSource<'_> {
    fn members(&self, of: usize) -> impl Iterator<Item = usize> + '_ {
        self.items_by_type.get(&of).into_iter().flatten().copied()
    }
}

/// Returns the parts of a range that were not read before, and marks the range as read. `read` has the ends of disjoint
/// ranges by their beginnings. However ranges overlap, each index is in one part of one answer.
fn unread(read: &mut BTreeMap<usize, usize>, range: Range<usize>) -> Vec<Range<usize>> {
    let before = read.range(..=range.start).next_back().map_or(0, |(_, end)| *end);
    let begin = range.start.max(before);
    if begin >= range.end {
        return Vec::new();
    }
    // One range takes the place of those within it, so that a later range does not meet them one by one.
    let within: Vec<(usize, usize)> = read.range(begin..range.end).map(|(start, end)| (*start, *end)).collect();
    let (mut start, mut parts) = (begin, Vec::new());
    for (next, end) in within {
        read.remove(&next);
        parts.push(start..next);
        start = end;
    }
    if start < range.end {
        parts.push(start..range.end);
    }
    read.insert(begin, start.max(range.end));
    parts
}

impl Outline<'_> {
    /// Tells whether a member runs with every test of its class.
    fn runs_always(&self, item: usize, has_supertypes: bool) -> bool {
        let is_lifecycle = |name: &&str| {
            name.starts_with("Before")
                || name.starts_with("After")
                || matches!(
                    *name,
                    "Rule" | "ClassRule" | "RegisterExtension" | "Parameters" | "DataPoint" | "DataPoints"
                )
        };
        // JUnit 3 uses names in place of annotations.
        let is_junit3 =
            || has_supertypes && self.names(item).any(|name| matches!(name, "setUp" | "tearDown" | "suite"));
        let Declaration { kind, annotations, .. } = self.declaration(item);
        self.runs_when_made(item)
            || (*kind == ItemKind::Method && (annotations.iter().any(is_lifecycle) || is_junit3()))
    }

    /// Tells whether a member runs when its class is initialised or an object is created.
    fn runs_when_made(&self, item: usize) -> bool {
        match self.declaration(item).kind {
            ItemKind::Constructor | ItemKind::Initializer | ItemKind::Constant => true,
            // A framework that reads a field's annotation also sets the field.
            ItemKind::Field => self.items[item].has_value || !self.declaration(item).annotations.is_empty(),
            ItemKind::Method => false,
        }
    }

    /// Tells whether another type may call a method under a name of its own.
    fn may_be_called_unseen(&self, item: usize, has_supertypes: bool) -> bool {
        let declaration = self.declaration(item);
        let is_test = |name: &&str| name.ends_with("Test") || name.ends_with("TestFactory");
        declaration.kind == ItemKind::Method
            && !declaration.annotations.iter().any(is_test)
            && (!self.items[item].has_body
                || declaration.annotations.contains(&"Override")
                || (has_supertypes && !declaration.is_static && !declaration.is_private))
    }
}

/// Returns the offsets of line starts. As in javac, a line ends at a line feed, a carriage return, or both.
fn line_starts(bytes: &[u8]) -> Vec<usize> {
    let ends = bytes.iter().enumerate().filter(|(at, byte)| match byte {
        b'\n' => true,
        b'\r' => bytes.get(at + 1) != Some(&b'\n'),
        _ => false,
    });
    std::iter::once(0).chain(ends.map(|(at, _)| at + 1)).collect()
}

/// Returns the offset of a column, counted from 1, in a line with tab stops every `tab` columns.
fn offset_in_line(line: &[u8], column: usize, tab: usize) -> usize {
    let (mut at, mut reached) = (0, 0);
    for chunk in line.utf8_chunks() {
        for c in chunk.valid().chars() {
            if reached + 1 >= column {
                return at;
            }
            reached = if c == '\t' { (reached / tab + 1) * tab } else { reached + c.len_utf16() };
            at += c.len_utf8();
        }
        // Bytes that are not UTF-8 count as characters of one byte.
        for _ in chunk.invalid() {
            if reached + 1 >= column {
                return at;
            }
            reached += 1;
            at += 1;
        }
    }
    at
}

#[cfg(test)]
mod tests;
