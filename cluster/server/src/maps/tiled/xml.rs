//! XML, element by element, within bounds: a thin layer over `quick-xml` that knows where it is.
//! `tmx` says what the elements mean. What must never happen here: a recursion or an allocation that
//! the file chooses.

use std::borrow::Cow;
use std::str::FromStr;

use quick_xml::XmlVersion;
use quick_xml::escape::resolve_predefined_entity;
use quick_xml::events::{BytesRef, BytesStart, Event};
use quick_xml::reader::Reader;

use crate::maps::MapProblem::{self, TooMany};
use crate::maps::SyntaxProblem;

/// Deepest nesting of elements: groups of layers and properties nest.
const MAX_DEPTH: usize = 32;

/// Most attributes of an element; Tiled writes some fifteen.
const MAX_ATTRIBUTES: usize = 64;

/// A file that is being read.
pub(super) struct Xml<'x> {
    text: &'x [u8],
    reader: Reader<&'x [u8]>,
    /// The names of the open elements, outermost first.
    open: Vec<String>,
}

pub(super) struct Element {
    name: String,
    attributes: Vec<(String, String)>,
    is_empty: bool,
    /// The end of its tag, bytes from the beginning of the file.
    at: u64,
}

/// What is directly within an element.
pub(super) enum Content<'x> {
    Element(Element),
    Text(Cow<'x, str>),
}

enum Step<'x> {
    Opened(Element),
    Closed,
    Text(Cow<'x, str>),
    Other,
    End,
}

impl<'x> Xml<'x> {
    pub fn new(text: &'x [u8]) -> Xml<'x> {
        Xml { text, reader: Reader::from_reader(text), open: Vec::new() }
    }

    /// The outermost element, which must have this name.
    pub fn root(&mut self, wanted: &'static str) -> Result<Element, MapProblem> {
        loop {
            match self.step()? {
                Step::Opened(root) if root.name == wanted => return Ok(root),
                Step::Opened(root) => return Err(self.no_root(&root, wanted)),
                Step::Text(text) if text.trim().is_empty() => {}
                Step::Text(_) | Step::End => return Err(self.no_element(wanted)),
                Step::Closed | Step::Other => {}
            }
        }
    }

    /// What comes next within an open element; `None` at its end.
    pub fn content(&mut self, parent: &Element) -> Result<Option<Content<'x>>, MapProblem> {
        if parent.is_empty {
            return Ok(None);
        }
        loop {
            match self.step()? {
                Step::Opened(element) => return Ok(Some(Content::Element(element))),
                Step::Text(text) => return Ok(Some(Content::Text(text))),
                Step::Closed | Step::End => return Ok(None),
                Step::Other => {}
            }
        }
    }

    /// The next element within an open one; `None` at its end.
    pub fn child(&mut self, parent: &Element) -> Result<Option<Element>, MapProblem> {
        loop {
            match self.content(parent)? {
                Some(Content::Element(element)) => return Ok(Some(element)),
                Some(Content::Text(_)) => {}
                None => return Ok(None),
            }
        }
    }

    /// All text directly within an open element, to its end.
    pub fn text_of(&mut self, element: &Element) -> Result<String, MapProblem> {
        let mut all = String::new();
        while let Some(content) = self.content(element)? {
            match content {
                Content::Text(text) => all.push_str(&text),
                Content::Element(child) => self.skip(&child)?,
            }
        }
        Ok(all)
    }

    /// Passes over the rest of an open element.
    pub fn skip(&mut self, element: &Element) -> Result<(), MapProblem> {
        if element.is_empty {
            return Ok(());
        }
        let outside = self.open.len() - 1;
        while self.open.len() > outside {
            self.step()?;
        }
        Ok(())
    }

    /// Reads to the end of the file, where nothing more may be.
    pub fn finish(mut self) -> Result<(), MapProblem> {
        loop {
            match self.step()? {
                Step::End => return Ok(()),
                Step::Text(text) if text.trim().is_empty() => {}
                Step::Other => {}
                _ => return Err(self.here(SyntaxProblem::Trailing)),
            }
        }
    }

    fn step(&mut self) -> Result<Step<'x>, MapProblem> {
        let event = match self.reader.read_event() {
            Ok(event) => event,
            Err(error) => {
                let at = self.reader.error_position();
                return Err(self.wrong_at(at, SyntaxProblem::Xml(error)));
            }
        };
        match event {
            Event::Start(start) => self.open(&start, false).map(Step::Opened),
            Event::Empty(start) => self.open(&start, true).map(Step::Opened),
            Event::End(_) => {
                self.open.pop();
                Ok(Step::Closed)
            }
            Event::Text(text) => Ok(Step::Text(text.into_inner())),
            Event::CData(text) => Ok(Step::Text(text.into_inner())),
            Event::GeneralRef(reference) => self.character(&reference).map(Step::Text),
            Event::Eof => match self.open.last() {
                Some(name) => Err(MapProblem::CutOff(format!("<{name}>"))),
                None => Ok(Step::End),
            },
            Event::Comment(_) | Event::Decl(_) | Event::PI(_) | Event::DocType(_) => {
                Ok(Step::Other)
            }
        }
    }

    fn open(&mut self, start: &BytesStart<'_>, is_empty: bool) -> Result<Element, MapProblem> {
        if self.open.len() >= MAX_DEPTH {
            return Err(TooMany { what: "elements within each other", most: MAX_DEPTH as u64 });
        }
        let name = start.local_name().into_inner().to_owned();
        let attributes = self.attributes(start)?;
        if !is_empty {
            self.open.push(name.clone());
        }
        Ok(Element { name, attributes, is_empty, at: self.reader.buffer_position() })
    }

    /// The attributes, whose prefixes do not count.
    fn attributes(&self, start: &BytesStart<'_>) -> Result<Vec<(String, String)>, MapProblem> {
        let mut all = Vec::new();
        // The library's check for doubles compares each with all before it.
        for attribute in start.attributes().with_checks(false) {
            if all.len() >= MAX_ATTRIBUTES {
                let most = MAX_ATTRIBUTES as u64;
                return Err(TooMany { what: "attributes of one element", most });
            }
            let attribute =
                attribute.map_err(|error| self.here(SyntaxProblem::Xml(error.into())))?;
            let value = attribute
                .normalized_value(XmlVersion::Implicit1_0)
                .map_err(|error| self.here(SyntaxProblem::Xml(error)))?;
            all.push((attribute.key.local_name().into_inner().to_owned(), value.into_owned()));
        }
        Ok(all)
    }

    /// The character that `&...;` stands for.
    fn character(&self, reference: &BytesRef<'_>) -> Result<Cow<'x, str>, MapProblem> {
        match reference.resolve_char_ref() {
            Ok(Some(character)) => return Ok(character.to_string().into()),
            Ok(None) => {}
            Err(error) => return Err(self.here(SyntaxProblem::Xml(error))),
        }
        let name = reference.borrow().into_inner().into_owned();
        let known = resolve_predefined_entity(&name).map(Cow::Borrowed);
        known.ok_or_else(|| self.here(SyntaxProblem::Entity(name)))
    }

    fn here(&self, problem: SyntaxProblem) -> MapProblem {
        self.wrong_at(self.reader.buffer_position(), problem)
    }

    pub fn wrong(&self, element: &Element, problem: SyntaxProblem) -> MapProblem {
        self.wrong_at(element.at, problem)
    }

    fn wrong_at(&self, at: u64, problem: SyntaxProblem) -> MapProblem {
        let at = usize::try_from(at).unwrap_or(usize::MAX).min(self.text.len());
        let before = &self.text[..at];
        let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
        let column = before.iter().rev().take_while(|byte| **byte != b'\n').count();
        MapProblem::Syntax { problem, line, column: column.max(1) }
    }

    /// An element that is missing before the present position.
    pub fn no_element(&self, wanted: &'static str) -> MapProblem {
        self.here(SyntaxProblem::NoElement { wanted })
    }

    fn no_root(&self, root: &Element, wanted: &'static str) -> MapProblem {
        match root.name.as_str() {
            "map" | "tileset" | "template" => MapProblem::Kind { found: root.name.clone(), wanted },
            _ => self.wrong(root, SyntaxProblem::NoElement { wanted }),
        }
    }

    /// A number, if the element has it.
    pub fn number<T: FromStr>(
        &self,
        element: &Element,
        attribute: &'static str,
    ) -> Result<Option<T>, MapProblem> {
        let Some(text) = element.attribute(attribute) else { return Ok(None) };
        let number = text.parse().map_err(|_| {
            let (element, found) = (element.name.clone(), text.to_owned());
            SyntaxProblem::Number { element, attribute, found }
        });
        number.map(Some).map_err(|problem| self.wrong(element, problem))
    }

    /// A number that the element must have.
    pub fn needs<T: FromStr>(
        &self,
        element: &Element,
        attribute: &'static str,
    ) -> Result<T, MapProblem> {
        self.number(element, attribute)?.ok_or_else(|| self.missing(element, attribute))
    }

    /// A text that the element must have.
    pub fn needs_text(
        &self,
        element: &Element,
        attribute: &'static str,
    ) -> Result<String, MapProblem> {
        let text = element.attribute(attribute).map(str::to_owned);
        text.ok_or_else(|| self.missing(element, attribute))
    }

    fn missing(&self, element: &Element, attribute: &'static str) -> MapProblem {
        self.wrong(element, SyntaxProblem::Missing { element: element.name.clone(), attribute })
    }
}

impl Element {
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The value of an attribute; of several with one name the last counts.
    pub fn attribute(&self, name: &str) -> Option<&str> {
        self.attributes.iter().rev().find(|(n, _)| n == name).map(|(_, value)| value.as_str())
    }

    /// The text of an attribute, or none.
    pub fn text(&self, name: &str) -> String {
        self.attribute(name).unwrap_or_default().to_owned()
    }
}
